// The output of every bench: prints the report as text or JSON on stdout and writes it to files.
// Throws std::runtime_error with the path.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/report/report.h"
#include "tools/machine/load.h"

namespace CLI {
class App;
}  // namespace CLI

namespace stoker {

class BenchOutput {
 public:
  // Adds --out and --json to the parser.
  explicit BenchOutput(CLI::App& app);
  BenchOutput(const BenchOutput&) = delete;
  BenchOutput& operator=(const BenchOutput&) = delete;

  // Records the command and the machine. Call it before the first measurement.
  void begin(const std::string& command, int argc, char** argv);
  // Prints the report; with --out, writes OUT/NAME.json and NAME.md.
  void finish(Report report) const;
  const nlohmann::ordered_json& machine() const { return machine_; }

 private:
  std::string out_;
  bool json_ = false;
  std::string command_;
  nlohmann::ordered_json machine_;
  MachineLoad load_at_begin_;
};

// Parses "1,2,4", "1..8" or "8"; a list keeps its order. Throws std::invalid_argument that names
// `option`.
std::vector<int> parse_counts(const std::string& text, const std::string& option);
// Returns "1,2,4,...", which ends with `most` itself.
std::string doubling_counts(int most);

// Adds --repeats; `repeats` holds the bench's default.
void add_repeats_option(CLI::App& app, int& repeats, const std::string& of_what);

}  // namespace stoker
