#include "tools/option/reduce_option.h"

#include <CLI/CLI.hpp>
#include <iterator>
#include <map>
#include <stdexcept>

namespace stoker {
namespace {

// Before there were other strategies, all-reduce was named by its transport alone.
constexpr const char* kOldValues[] = {"nccl", "device", "host"};

const std::map<std::string, GradWire> kGradWireNames(std::begin(kGradWires), std::end(kGradWires));

std::string problem_of(const std::string& text) {
  for (const char* old : kOldValues) {
    if (text == old) return text + " is now all-reduce:" + text;
  }
  std::string names;
  for (const auto& [name, kind] : kReduceKinds) {
    if (text == name) return "";
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return text + " is none of " + names;
}

std::string value_names() {
  std::string names;
  for (const auto& [name, kind] : kReduceKinds)
    names += (names.empty() ? "" : ",") + std::string(name);
  return "{" + names + "}";
}

}  // namespace

ReduceKind parse_reduce(const std::string& text) {
  for (const auto& [name, kind] : kReduceKinds) {
    if (text == name) return kind;
  }
  throw std::invalid_argument("--reduce: " + problem_of(text));
}

CLI::Option* check_reduce(CLI::Option* option) {
  return option->check(CLI::Validator(problem_of, value_names()));
}

GradWire parse_grad_wire(const std::string& text) { return kGradWireNames.at(text); }

CLI::Option* check_grad_wire(CLI::Option* option) {
  return option->check(CLI::IsMember(&kGradWireNames));
}

}  // namespace stoker
