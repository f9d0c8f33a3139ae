// stoker bench compare and guard: better or worse, beyond noise?
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "bench/report/compare.h"
#include "bench/suite/guard_bench.h"
#include "pipeline/files/json_file.h"
#include "tools/command/bench.h"
#include "tools/command/bench_options.h"
#include "tools/command/command.h"
#include "tools/machine/host_info.h"

namespace stoker {
namespace {

constexpr double kGuardedLoss = 0.02;

nlohmann::ordered_json read_report(const std::string& path) {
  try {
    return read_json_file<nlohmann::ordered_json>(path, [](nlohmann::ordered_json json) {
      check_report(json);
      return json;
    });
  } catch (const std::runtime_error& error) {
    throw std::invalid_argument(error.what());
  }
}

// Prints the comparison and returns the exit code.
int print_comparison(const Comparison& comparison) {
  fmt::print("{}\n", to_markdown(compare_table(comparison)));
  for (const std::string& line : comparison.other_settings)
    fmt::print("other settings: {}\n", line);
  for (const std::string& name : comparison.only_before) fmt::print("only before: {}\n", name);
  for (const std::string& name : comparison.only_after) fmt::print("only after: {}\n", name);
  fmt::print("{}\n", comparison.worse() ? "something is worse, beyond noise"
                                        : "nothing is worse, beyond noise");
  return comparison.worse() ? kExitFound : kExitOk;
}

// Returns the folder's result of this kind of processor.
nlohmann::ordered_json baseline_of(const std::string& folder, const std::string& processor) {
  std::vector<std::string> others;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    nlohmann::ordered_json report = read_report(entry.path().string());
    const std::string found = report["settings"].value("processor", "");
    if (found == processor) return report;
    others.push_back(found);
  }
  std::sort(others.begin(), others.end());
  throw std::invalid_argument(
      fmt::format("--baseline: {} has no result of this processor, {}; it has those of: {}", folder,
                  processor, fmt::join(others, ", ")));
}

}  // namespace

int run_bench_compare(int argc, char** argv) {
  CompareOptions options;
  std::string before, after;
  auto app = make_parser(
      "bench compare",
      "Compares two results (JSON files of --out) figure by figure: the ratio with its interval, "
      "and\n"
      "whether there is a difference beyond noise, by Mann and Whitney's test on the repeats. The\n"
      "chance of one false alarm over all figures is --alpha at most (Holm). Exit code 1: "
      "something\n"
      "is worse. A machine that was slower during one of the runs looks like a change: run both "
      "in\n"
      "turn, and look at CPU time rather than at rates where others use the machine.",
      "  stoker bench compare before/feed.json after/feed.json\n"
      "  stoker bench compare a.json b.json --least-change 0.05\n");
  app->add_option("before", before, "The first result")->required();
  app->add_option("after", after, "The second result")->required();
  app->add_option("--alpha", options.alpha, "Chance of one false alarm over all figures")
      ->check(CLI::Range(1e-9, 0.5));
  app->add_option("--least-change", options.least_change,
                  "The least change that counts, as a share: 0.02 is 2 %")
      ->check(CLI::Range(0.0, 10.0));
  if (const auto code = parse_options(*app, argc, argv)) return *code;

  const nlohmann::ordered_json first = read_report(before), second = read_report(after);
  const Comparison comparison = compare_reports(first, second, options);
  if (comparison.changes.empty()) {
    throw std::invalid_argument(before + " and " + after + " have no figure in common");
  }
  return print_comparison(comparison);
}

int run_bench_guard(int argc, char** argv) {
  GuardBenchOptions options;
  std::string folder;
  auto app = make_parser(
      "bench guard",
      "Measures decoding, recipes, the feed and the training step: the CPU time of each on one\n"
      "core, divided by what libjpeg-turbo takes for the same pictures in the same repeat. With\n"
      "--baseline, compares with the result of the same kind of processor in that folder: exit "
      "code\n"
      "1 says that something takes 2 % more, beyond noise; 3, that it may be the machine, which\n"
      "others used. The pictures are drawn.",
      "  stoker bench guard --baseline bench/results/guard\n"
      "  stoker bench guard --out now    # rename now/guard.json, and it is a baseline\n");
  app->add_option("--baseline", folder, "Folder of results to compare with (default: none)")
      ->check(CLI::ExistingDirectory);
  app->add_option("--passes", options.passes,
                  "Passes over the pictures, of which the fastest counts")
      ->check(CLI::Range(1, 1000));
  add_repeats_option(*app, options.repeats, "every measurement, in turn");
  BenchOutput output(*app);
  app->get_option("--json")->excludes("--baseline");
  if (const auto code = parse_options(*app, argc, argv)) return *code;

  const std::string processor = read_host_info().processor;
  nlohmann::ordered_json baseline;
  if (!folder.empty()) baseline = baseline_of(folder, processor);
  output.begin("stoker bench guard", argc, argv);
  const BenchData photos({});
  Report report = bench_guard(photos.source(), options);
  report.settings["processor"] = processor;
  const int code = output.finish(report);
  if (folder.empty()) return code;
  const Comparison comparison =
      compare_reports(baseline, to_json(report), {.least_change = kGuardedLoss});
  const int found = print_comparison(comparison);
  if (found == kExitOk || output.machine()["neighbours"].value("quiet", true)) return found;
  fmt::print(stderr, "the machine was not quiet, so the loss may be its own: run it again\n");
  return kExitFailed;
}

}  // namespace stoker
