#include "tools/command/bench_output.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "pipeline/store/object_store.h"
#include "tools/data/output_file.h"
#include "tools/machine/machine.h"

namespace stoker {
namespace {

constexpr int kMaxCount = 1 << 20;

int count_of(const std::string& text, const std::string& all, const std::string& option) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < 0 || value > kMaxCount) {
    throw std::invalid_argument(
        fmt::format("{}: '{}' is not a list like 1,2,4 or 1..8", option, all));
  }
  return value;
}

}  // namespace

BenchOutput::BenchOutput(CLI::App& app) {
  app.add_option(
      "--out", out_,
      "Folder for JSON and Markdown; bench/report/plot FILE.json draws its plots (default: none)");
  app.add_flag("--json", json_, "Print JSON instead of tables");
}

void BenchOutput::begin(const std::string& command, int argc, char** argv) {
  command_ = command;
  for (int i = 1; i < argc; ++i) command_ += " " + shown_word(argv[i]);
  machine_ = describe_machine();
  load_at_begin_ = read_machine_load({});
}

void BenchOutput::finish(Report report) const {
  report.command = command_;
  report.machine = machine_;
  report.machine["neighbours"] = describe_neighbours(read_machine_load({}) - load_at_begin_,
                                                     machine_.value("cores_usable", 0));
  const std::string json = to_json(report).dump(1) + "\n";
  fmt::print("{}", json_ ? json : to_markdown(report, machine_line(report.machine)));
  if (out_.empty()) return;
  const std::filesystem::path folder = out_;
  std::filesystem::create_directories(folder);
  write_file(folder / (report.bench + ".json"), json);
  write_file(folder / (report.bench + ".md"), to_markdown(report, machine_line(report.machine)));
}

std::vector<int> parse_counts(const std::string& text, const std::string& option) {
  const size_t dots = text.find("..");
  std::vector<int> counts;
  if (dots != std::string::npos) {
    const int first = count_of(text.substr(0, dots), text, option);
    const int last = count_of(text.substr(dots + 2), text, option);
    for (int count = first; count <= last; ++count) counts.push_back(count);
  } else {
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');) {
      counts.push_back(count_of(part, text, option));
    }
  }
  std::vector<int> sorted = counts;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    throw std::invalid_argument(fmt::format("{}: '{}' names a number twice", option, text));
  }
  if (counts.empty()) throw std::invalid_argument(fmt::format("{}: '{}' is empty", option, text));
  return counts;
}

std::string doubling_counts(int most) {
  std::string text;
  for (int count = 1; count < most; count *= 2) text += fmt::format("{},", count);
  return text + std::to_string(most);
}

void add_repeats_option(CLI::App& app, int& repeats, const std::string& of_what) {
  app.add_option("--repeats", repeats,
                 "Repeats of " + of_what + "; 6 and more give a 95 % interval")
      ->check(CLI::Range(1, 100'000));
}

}  // namespace stoker
