// Options that several benches and `stoker plan` have, and the output of all of them. Throws
// std::invalid_argument that names the option, std::runtime_error with the path of a file.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/report/report.h"
#include "bench/suite/link_machine.h"
#include "pipeline/source.h"
#include "tools/machine/load.h"
#include "tools/option/augment_choice.h"
#include "tools/option/feed_options.h"

namespace CLI {
class App;
}  // namespace CLI

namespace stoker {

// Prints the report as text or JSON on stdout, and writes it to files.
class BenchOutput {
 public:
  // Adds --out and --json to the parser.
  explicit BenchOutput(CLI::App& app);
  BenchOutput(const BenchOutput&) = delete;
  BenchOutput& operator=(const BenchOutput&) = delete;

  // Records the command and the machine. Call it before the first measurement.
  void begin(const std::string& command, int argc, char** argv);
  // Prints the report; with --out, writes OUT/NAME.json and NAME.md. Returns kExitOk.
  int finish(Report report);
  // After finish() also how busy it was meanwhile (describe_neighbours).
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

// The data of the feed benches: the user's, or pictures that are drawn for them, from files or from
// memory.
struct BenchDataOptions {
  DataOptions data;
  AugmentChoice augment;
  bool in_memory = false;
};

void add_bench_data_options(CLI::App& app, BenchDataOptions& options);

class BenchData {
 public:
  // Without options.data.data, draws 64 JPEGs of 500 x 375 into a temporary folder, which the
  // destructor removes. Throws what open_data() throws.
  explicit BenchData(const BenchDataOptions& options);
  ~BenchData();
  BenchData(const BenchData&) = delete;
  BenchData& operator=(const BenchData&) = delete;

  const Source& source() const { return memory_ ? *memory_ : *files_; }
  // Returns text for the report's settings: the folder, or what was drawn, and whether it is in
  // memory.
  std::string describe() const;

 private:
  const std::string drawn_;  // the temporary folder; "": none
  std::unique_ptr<Source> files_, memory_;
};

// --machine: a machine with links.
LinkMachine machine_option(const std::string& preset_or_file);
std::string preset_names();  // "7gforce, 4xm60, ..."

}  // namespace stoker
