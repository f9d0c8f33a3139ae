// stoker bench compare: better or worse, beyond noise?
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <stdexcept>

#include "bench/report/compare.h"
#include "pipeline/files/json_file.h"
#include "tools/command/bench.h"
#include "tools/command/command.h"

namespace stoker {
namespace {

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

void print_lists(const Comparison& comparison) {
  for (const std::string& line : comparison.other_settings)
    fmt::print("other settings: {}\n", line);
  for (const std::string& name : comparison.only_before) fmt::print("only before: {}\n", name);
  for (const std::string& name : comparison.only_after) fmt::print("only after: {}\n", name);
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
  fmt::print("{}\n", to_markdown(compare_table(comparison)));
  print_lists(comparison);
  fmt::print("{}\n", comparison.worse() ? "something is worse, beyond noise"
                                        : "nothing is worse, beyond noise");
  return comparison.worse() ? kExitFound : kExitOk;
}

}  // namespace stoker
