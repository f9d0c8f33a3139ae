// Scores `stoker profile` on feeds with one fault each, and under conditions that machines and data
// sets have: does it name the right stage, does the run with the first recommendation reach the
// predicted rate, and does that lie in the range that was said? Prints a table (Markdown). CTest
// does not run it, because it measures times: it needs a quiet machine, and root for control
// groups, and takes 11 minutes. With --profiles it writes the profile of each feed instead of
// trying what it recommends: the pages of tools/docs are drawn from some of them. Exit codes: 0 at
// least 95 % of the stages are right, 1 fewer are.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/report/program.h"
#include "bench/report/statistics.h"
#include "pipeline/cache/decoded_cache.h"
#include "staging/allowed_cores.h"
#include "tests/tools/profile/score/fault_scenarios.h"
#include "tools/profile/emulated.h"

namespace stoker {
namespace {

struct Arguments {
  double seconds = 3.5;
  int repeats = 3;
  std::string set = "all";
  std::string only;
  std::string profiles;  // a folder for what `stoker profile` would write; "": none
};

struct Result {
  Limit named = Limit::unknown;
  double rate = 0, waiting_share = 0, confidence = 0, model_error = 0;
  double other_cores = 0;
  std::string recommendation;
  double predicted = 0, achieved = 0;  // images/s; 0: nothing to compare
  double low = 0, high = 0;            // 0: no range was said
};

// Sums over the results of a set.
struct Tally {
  int runs = 0, right = 0, ranges = 0, inside = 0;
  std::vector<double> errors;  // of the predictions
};

std::shared_ptr<DecodedCache> decoded_cache(const FaultyFeed& feed, const Source& source) {
  if (feed.decoded_share <= 0) return nullptr;
  const Size size = feed.augment.output;
  const double bytes = 3.0 * size.width * size.height * static_cast<double>(source.size());
  return std::make_shared<DecodedCache>(
      DecodedCacheOptions{.bytes = static_cast<int64_t>(feed.decoded_share * bytes)});
}

Profile profile_once(const FaultyFeed& feed, double seconds, bool probe) {
  std::unique_ptr<Source> stored;
  if (feed.stored) {
    stored = feed.in_store ? feed.stored->open_in_store(feed.store) : feed.stored->open_on_disk();
  }
  const Source& fast = stored ? *stored : *feed.source;
  const SlowSource slow(fast, feed.reads);
  const bool slowed = feed.reads.latency_s > 0 || feed.reads.images_per_second > 0;
  const Source& source = slowed ? static_cast<const Source&>(slow) : fast;
  const auto device = feed.copy_s > 0 ? make_slow_copy_device(feed.copy_s) : nullptr;
  LoaderOptions options = feed.loader;
  options.feed.cache = decoded_cache(feed, source);
  const FewerCores cores(feed.cores);
  const CpuQuota quota(feed.quota);
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
  return profile_emulated(source, feed.augment, options, how, run);
}

// Measures again if somebody else used the cores meanwhile.
Profile profile(const FaultyFeed& feed, double seconds, bool probe) {
  constexpr double kQuiet = 0.06;
  constexpr int kTries = 4;
  for (int i = 1;; ++i) {
    Profile found = profile_once(feed, seconds, probe);
    const RunMeasurements& measured = found.measurements.measured;
    if (feed.neighbours > 0 || measured.other_cores < kQuiet || i == kTries) return found;
    std::fprintf(stderr, "other programs used %.2f cores: again\n", measured.other_cores);
  }
}

// Tries the first recommendation that is possible on this machine.
void try_recommendation(const Verdict& verdict, const FaultyFeed& feed, double seconds,
                        Result& result) {
  for (const Recommendation& each : verdict.recommendations) {
    FaultyFeed changed = feed;
    if (!apply_change(each.change, changed)) continue;
    result.recommendation = each.what;
    result.predicted = each.samples_per_second;
    result.low = each.low;
    result.high = each.high;
    result.achieved = profile(changed, seconds, false).measurements.measured.samples_per_second;
    return;
  }
}

Result score(const FaultScenario& scenario, double seconds, const std::string& profiles) {
  Profile found = profile(scenario.feed, seconds, true);
  if (!profiles.empty()) {
    found.command = "a feed with one fault: " + scenario.name;
    std::ofstream(profiles + "/" + scenario.name + ".json") << profile_json(found).dump();
  }
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
  } else if (profiles.empty()) {
    try_recommendation(found.verdict, scenario.feed, 0.6 * seconds, result);
  }
  return result;
}

double error_of(const Result& result) {
  return result.achieved > 0 && result.predicted > 0 ? result.predicted / result.achieved - 1 : NAN;
}

void print_row(const FaultScenario& scenario, const Result& result) {
  const double error = error_of(result);
  const std::string range = result.high > 0
                                ? " (" + std::to_string(std::lround(result.low)) + " to " +
                                      std::to_string(std::lround(result.high)) + ")"
                                : "";
  std::printf("| %s | %s | %s%s | %.2f | %.0f | %.0f%% | %s | %.0f%s | %.0f | %s |\n",
              scenario.name.c_str(), to_string(scenario.expected), to_string(result.named),
              result.named == scenario.expected ? "" : " (wrong)", result.confidence, result.rate,
              100 * result.waiting_share, result.recommendation.c_str(), result.predicted,
              range.c_str(), result.achieved,
              std::isnan(error) ? "-" : (std::to_string(std::lround(100 * error)) + "%").c_str());
  std::fflush(stdout);
}

void add(const FaultScenario& scenario, const Result& result, Tally& tally) {
  ++tally.runs;
  tally.right += result.named == scenario.expected;
  const double error = error_of(result);
  tally.errors.push_back(std::isnan(error) ? INFINITY : std::abs(error));
  tally.ranges += result.high > 0;
  tally.inside +=
      result.high > 0 && result.low <= result.achieved && result.achieved <= result.high;
}

void print(const char* name, const Tally& tally) {
  std::printf(
      "%s: %d of %d runs name the right stage; prediction error %.1f%% (median), %td of %d within "
      "10%%; %d of %d ranges have what was achieved\n",
      name, tally.right, tally.runs, 100 * median(tally.errors),
      std::ranges::count_if(tally.errors, [](double e) { return e <= 0.1; }), tally.runs,
      tally.inside, tally.ranges);
}

int run(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Scores the profiler on feeds in which one thing is wrong."};
  app.add_option("--seconds", arguments.seconds, "Length of each profile, seconds")
      ->check(CLI::Range(0.5, 600.0));
  app.add_option("--repeats", arguments.repeats, "Repeats of each fault; conditions run once")
      ->check(CLI::Range(1, 100));
  app.add_option("--set", arguments.set, "faults, conditions or all")
      ->check(CLI::IsMember({"faults", "conditions", "all"}));
  app.add_option("--only", arguments.only, "Runs only the feeds whose names contain this");
  app.add_option("--profiles", arguments.profiles,
                 "Folder for the profile of each feed, as JSON; then no recommendation is tried")
      ->check(CLI::ExistingDirectory);
  CLI11_PARSE(app, argc, argv);
  const ScenarioData data;
  std::printf("a sample takes %.2f ms of CPU time, %g cores\n\n", 1e3 * data.sample_cpu_s(),
              allowed_cores());
  std::printf(
      "| feed | stage | named | confidence | images/s | waiting | recommendation | predicted | "
      "achieved | error |\n|---|---|---|---|---|---|---|---|---|---|\n");
  Tally faults, conditions;
  const auto score_all = [&](const std::vector<FaultScenario>& scenarios, Tally& tally) {
    for (const FaultScenario& scenario : scenarios) {
      if (scenario.name.find(arguments.only) == std::string::npos) continue;
      const Result result =
          score(scenario, scenario.length * arguments.seconds, arguments.profiles);
      print_row(scenario, result);
      add(scenario, result, tally);
    }
  };
  for (int i = 0; i < arguments.repeats && arguments.set != "conditions"; ++i) {
    score_all(data.faults(), faults);
  }
  if (arguments.set != "faults") score_all(data.conditions(), conditions);
  std::printf("\n");
  if (faults.runs > 0) print("faults", faults);
  if (conditions.runs > 0) print("conditions", conditions);
  return faults.right + conditions.right >= 0.95 * (faults.runs + conditions.runs) ? 0 : 1;
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  return stoker::run_program("profile_score", stoker::run, argc, argv);
}
