// How every bench ends: the report as text or JSON on stdout, and as files. Errors:
// std::runtime_error with the path.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/report/report.h"
#include "tools/machine/load.h"

namespace stoker {

class BenchOutput {
 public:
  // Ties --out and --json to the parser.
  explicit BenchOutput(CLI::App& app);
  BenchOutput(const BenchOutput&) = delete;
  BenchOutput& operator=(const BenchOutput&) = delete;

  // Notes the command and the machine: to be called before anything is measured.
  void begin(const std::string& command, int argc, char** argv);
  // Prints and writes: OUT/NAME.json, NAME.md and the plots' SVG files.
  void finish(Report report) const;
  const nlohmann::ordered_json& machine() const { return machine_; }

 private:
  std::string out_;
  bool json_ = false;
  std::string command_;
  nlohmann::ordered_json machine_;
  MachineLoad load_at_begin_;
};

// "1,2,4" or "1..8" or "8": ascending or as given. Throws std::invalid_argument with `option`.
std::vector<int> parse_counts(const std::string& text, const std::string& option);
// 1, 2, 4, ... and `most` itself.
std::string doubling_counts(int most);

// --repeats, with the bench's own default.
void add_repeats_option(CLI::App& app, int& repeats, const std::string& of_what);

}  // namespace stoker
