// Scores `stoker profile` on feeds with one fault each: does it name the right stage, and does the
// run with the first recommendation reach the predicted rate? Prints a table (Markdown). CTest does
// not run it, because it measures times: it needs a quiet machine and takes 7 minutes. Exit codes:
// 0 at least 95 % of the stages are right, 1 fewer are.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/report/program.h"
#include "bench/report/statistics.h"
#include "staging/allowed_cores.h"
#include "tests/tools/profile/score/fault_scenarios.h"
#include "tools/profile/emulated.h"

namespace stoker {
namespace {

struct Arguments {
  double seconds = 3.5;
  int repeats = 3;
  std::string only;
};

struct Result {
  Limit named = Limit::unknown;
  double rate = 0, waiting_share = 0, confidence = 0, model_error = 0;
  double other_cores = 0;
  std::string recommendation;
  double predicted = 0, achieved = 0;  // images/s; 0: nothing to compare
};

Profile profile(const FaultyFeed& feed, double seconds, bool probe) {
  const SlowSource slow(*feed.source, feed.reads);
  const bool slowed = feed.reads.latency_s > 0 || feed.reads.images_per_second > 0;
  const Source& source = slowed ? static_cast<const Source&>(slow) : *feed.source;
  const auto device = feed.copy_s > 0 ? make_slow_copy_device(feed.copy_s) : nullptr;
  const FewerCores cores(feed.cores);
  const NoisyNeighbours neighbours(feed.neighbours);
  FeedRun how;
  how.demand = feed.demand;
  how.seconds = seconds;
  how.device = device.get();
  if (probe) {
    how.storage = probe_storage(
        source, {.threads = std::max(1, feed.loader.feed.io_threads), .seconds_each = 0.3});
  }
  ProfiledRun run;
  return profile_emulated(source, feed.augment, feed.loader, how, run);
}

// Tries the first recommendation that is possible on this machine.
void try_recommendation(const Verdict& verdict, const FaultyFeed& feed, double seconds,
                        Result& result) {
  for (const Recommendation& each : verdict.recommendations) {
    FaultyFeed changed = feed;
    if (!apply_change(each.change, changed)) continue;
    result.recommendation = each.what;
    result.predicted = each.samples_per_second;
    result.achieved = profile(changed, seconds, false).measurements.measured.samples_per_second;
    return;
  }
}

Result score(const FaultScenario& scenario, double seconds) {
  const Profile found = profile(scenario.feed, seconds, true);
  const RunMeasurements& measured = found.measurements.measured;
  Result result;
  result.named = found.verdict.limit;
  result.rate = measured.samples_per_second;
  result.waiting_share = found.verdict.waiting_share;
  result.confidence = found.verdict.confidence;
  result.model_error = found.verdict.model_error;
  result.other_cores = measured.other_cores;
  if (scenario.expected == Limit::device) {
    result.recommendation = "none: the bound";
    result.predicted = found.verdict.bound_samples_per_second;
    result.achieved = scenario.feed.demand;
  } else {
    try_recommendation(found.verdict, scenario.feed, 0.6 * seconds, result);
  }
  return result;
}

double error_of(const Result& result) {
  return result.achieved > 0 && result.predicted > 0 ? result.predicted / result.achieved - 1 : NAN;
}

void print_row(const FaultScenario& scenario, const Result& result) {
  const double error = error_of(result);
  std::printf("| %s | %s | %s%s | %.2f | %.0f | %.0f%% | %s | %.0f | %.0f | %s |\n",
              scenario.name.c_str(), to_string(scenario.expected), to_string(result.named),
              result.named == scenario.expected ? "" : " (wrong)", result.confidence, result.rate,
              100 * result.waiting_share, result.recommendation.c_str(), result.predicted,
              result.achieved,
              std::isnan(error) ? "-" : (std::to_string(std::lround(100 * error)) + "%").c_str());
  std::fflush(stdout);
}

int run(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Scores the profiler on feeds in which one thing is wrong."};
  app.add_option("--seconds", arguments.seconds, "Length of each profile, seconds")
      ->check(CLI::Range(0.5, 600.0));
  app.add_option("--repeats", arguments.repeats, "Repeats of each fault")
      ->check(CLI::Range(1, 100));
  app.add_option("--only", arguments.only, "Runs only the faults whose names contain this");
  CLI11_PARSE(app, argc, argv);
  const ScenarioData data;
  std::printf("a sample takes %.2f ms of CPU time, %g cores\n\n", 1e3 * data.sample_cpu_s(),
              allowed_cores());
  std::printf(
      "| fault | stage | named | confidence | images/s | waiting | recommendation | predicted | "
      "achieved | error |\n|---|---|---|---|---|---|---|---|---|---|\n");
  int runs = 0, right = 0;
  std::vector<double> errors;  // of the predictions of right runs
  for (int repeat = 0; repeat < arguments.repeats; ++repeat) {
    for (const FaultScenario& scenario : data.scenarios()) {
      if (scenario.name.find(arguments.only) == std::string::npos) continue;
      const Result result = score(scenario, scenario.length * arguments.seconds);
      print_row(scenario, result);
      ++runs;
      right += result.named == scenario.expected;
      const double error = error_of(result);
      if (result.named == scenario.expected && !std::isnan(error))
        errors.push_back(std::abs(error));
    }
  }
  std::printf("\n%d of %d runs name the right stage", right, runs);
  if (!errors.empty()) {
    std::printf("; prediction error %.1f%% (median), %td of %zu within 10%%", 100 * median(errors),
                std::ranges::count_if(errors, [](double e) { return e <= 0.1; }), errors.size());
  }
  std::printf("\n");
  return right >= 0.95 * runs ? 0 : 1;
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  return stoker::run_program("profile_score", stoker::run, argc, argv);
}
