// stoker augment: lists the stages of which augmentations are made, and explains one.

#include "pipeline/augment.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <sstream>

#include "tools/command/command.h"
#include "tools/option/augment_choice.h"

namespace stoker {
namespace {

constexpr size_t kListWidth = 100;

constexpr const char* kGrammar =
    "An augmentation is a list of stages, which run from left to right:\n\n"
    "  random_resized_crop(scale=(0.35, 1)) | random_apply(color_jitter(0.4) | grayscale, "
    "p=0.8)\n\n"
    "Arguments go by their places or by their names. A value is a number, several in brackets, a\n"
    "word, True or False, a 'text', or a list of stages. Arguments in [] have no value unless "
    "they\n"
    "are given; a stage without a size makes images of the sample's.\n";

std::string parameter_text(const Parameter& parameter) {
  if (!parameter.otherwise) return parameter.name;
  if (!*parameter.otherwise) return fmt::format("[{}]", parameter.name);
  return fmt::format("{}={}", parameter.name, parameter.otherwise);
}

// Returns "random_resized_crop([size], scale=(0.08, 1), ...)", in lines that begin below the first
// argument.
std::string signature(const StageType& type) {
  std::string text = fmt::format("  {}", type.name);
  if (type.parameters.empty()) return text;
  const std::string indent(text.size() + 1, ' ');
  size_t line = text.size();
  for (size_t i = 0; i < type.parameters.size(); ++i) {
    const bool last = i + 1 == type.parameters.size();
    const std::string word = parameter_text(type.parameters[i]) + (last ? ")" : ",");
    const bool breaks = i > 0 && line + 1 + word.size() > kListWidth;
    text += i == 0 ? "(" : breaks ? "\n" + indent : " ";
    line = (breaks ? indent.size() : line + 1) + word.size();
    text += word;
  }
  return text;
}

void print_stage(const StageType& type) {
  fmt::print("{}\n      {}\n", signature(type), type.help);
  std::istringstream details(type.details);
  for (std::string line; std::getline(details, line);) fmt::print("      {}\n", line);
  for (const Parameter& parameter : type.parameters) {
    if (parameter.choices.empty()) continue;
    fmt::print("      {}: {}\n", parameter.name, fmt::join(parameter.choices, ", "));
  }
}

}  // namespace

int run_augment(int argc, char** argv) {
  AugmentChoice choice;
  auto app = make_parser(
      "augment",
      "Lists the stages of which an augmentation is made, as --augment takes them. With --augment\n"
      "or --model it says instead what becomes of each stage: whether the decoder does it, and\n"
      "which ones are joined.",
      "  stoker augment\n"
      "  stoker augment --augment \"random_resized_crop(scale=(0.35, 1)) | color_jitter(0.4) | "
      "flip\"\n"
      "  stoker augment --model resnet18 --view eval\n");
  add_augment_choice(*app, choice);
  if (const auto code = parse_options(*app, argc, argv)) return *code;
  if (choice.augment || !choice.model.empty()) {
    print_explanation(choice.spec(std::nullopt));
    return kExitOk;
  }
  refuse_if_given(*app, {"--size", "--view"}, "it needs --augment or --model");
  fmt::print("{}\n", kGrammar);
  for (const StageType* type : all_stages()) print_stage(*type);
  return kExitOk;
}

}  // namespace stoker
