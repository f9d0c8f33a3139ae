// Measurements of made-up spans, and the trace file of them.

#include "tools/profile/run_measurements.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "pipeline/source/synthetic_source.h"
#include "tools/profile/emulated.h"
#include "tools/profile/trace_file.h"

namespace stoker {
namespace {

constexpr int64_t kMs = 1'000'000;

// Ten steps of 10 ms: 2 ms wait, 6 ms compute, 1 ms reduce, 1 ms unknown. Four rows each, which
// worker 0 decodes in 1 ms and colours in 0.5 ms, half of it CPU time.
class MadeUpRun {
 public:
  MadeUpRun() {
    run_.tracks = {{"replica 0", 1}, {"worker 0", 2}, {"I/O thread 0", 3}};
    for (int64_t step = 0; step < 10; ++step) {
      const int64_t at = step * 10 * kMs;
      for (int64_t row = 0; row < 4; ++row) {
        const int64_t begin = at + row * 2 * kMs;
        const SampleId sample = step * 4 + row;
        add(SpanKind::read, 2, step, begin, begin + kMs / 2, sample, kMs / 10);
        add(SpanKind::decode, 1, step, begin, begin + kMs, sample, kMs / 2);
        add(SpanKind::pixels, 1, step, begin + kMs, begin + kMs * 3 / 2, sample, kMs / 4);
      }
      add(SpanKind::commit, 1, step, at + 8 * kMs, at + 8 * kMs);
      add(SpanKind::input_wait, 0, step, at, at + 2 * kMs);
      add(SpanKind::compute, 0, step, at + 2 * kMs, at + 8 * kMs);
      add(SpanKind::lease, 0, step, at + 2 * kMs, at + 8 * kMs);
      add(SpanKind::reduce, 0, step, at + 8 * kMs, at + 9 * kMs);
      add(SpanKind::step, 0, step, at, at + 10 * kMs);
    }
    run_.windows = {{Phase::measured, 0, 101 * kMs, 1, {}}};
  }
  ProfiledRun& run() { return run_; }
  void add(SpanKind kind, int track, Step step, int64_t begin_ns, int64_t end_ns,
           SampleId sample = -1, int64_t cpu_ns = -1) {
    TrackedSpan span;
    span.kind = kind;
    span.track = track;
    span.step = step;
    span.sample = sample;
    span.begin_ns = begin_ns;
    span.end_ns = end_ns;
    span.cpu_ns = cpu_ns;
    run_.spans.push_back(span);
  }

 private:
  ProfiledRun run_;
};

// Two windows of 100 ms at 400 images/s, in which the CPUs took 8 J; one did not say what GPUs
// took.
TEST(RunMeasurements, EnergyIsThatOfTheWindows) {
  MadeUpRun made;
  made.run().windows = {{Phase::measured, 0, 100 * kMs, 1, {}, {3, 1}},
                        {Phase::measured, 100 * kMs, 200 * kMs, 1, {}, {5, -1}}};
  const RunMeasurements measured =
      measure_run(made.run(), 4, windows_of(made.run(), Phase::measured));
  EXPECT_EQ(measured.energy.cpus, 8);
  EXPECT_EQ(measured.energy.gpus, -1);
  EXPECT_NEAR(measured.images(), measured.samples_per_second * 0.2, 1e-9);
  EXPECT_EQ(measure_run(made.run(), 4, {}).energy.cpus, -1);
}

TEST(RunMeasurements, SplitsTheStepAndItsParts) {
  MadeUpRun made;
  const RunMeasurements measured =
      measure_run(made.run(), 4, windows_of(made.run(), Phase::measured));
  EXPECT_EQ(measured.steps, 9);  // from the end of the first one
  EXPECT_NEAR(measured.samples_per_second, 400, 1e-6);
  EXPECT_NEAR(measured.split.step, 10e-3, 1e-9);
  EXPECT_NEAR(measured.split.input_wait, 2e-3, 1e-9);
  EXPECT_NEAR(measured.split.compute, 6e-3, 1e-9);
  EXPECT_NEAR(measured.split.gradient_wait, 1e-3, 1e-9);
  EXPECT_NEAR(measured.split.other, 1e-3, 1e-9);
  EXPECT_NEAR(measured.hold_s[0], 6e-3, 1e-9);
  EXPECT_NEAR(measured.rest_s[0], 2e-3, 1e-9);
}

// Nine steps in a row have their batch ready, the tenth waits 50 ms.
TEST(RunMeasurements, NamesBurstsFollowedByPauses) {
  ProfiledRun run;
  run.tracks = {{"replica 0", 1}};
  int64_t at = 0;
  const auto add = [&](SpanKind kind, Step step, int64_t length) {
    TrackedSpan span;
    span.kind = kind;
    span.step = step;
    span.begin_ns = kind == SpanKind::step ? at - length : at;
    span.end_ns = span.begin_ns + length;
    if (kind != SpanKind::step) at = span.end_ns;
    run.spans.push_back(span);
  };
  for (Step step = 0; step < 61; ++step) {
    const int64_t wait = step % 10 == 0 ? 50 * kMs : 0;
    add(SpanKind::input_wait, step, wait);
    add(SpanKind::compute, step, 10 * kMs);
    add(SpanKind::step, step, wait + 10 * kMs);
  }
  run.windows = {{Phase::measured, 0, at + 1, 1, {}}};
  const Pauses pauses = measure_run(run, 4, run.windows).pauses;
  EXPECT_EQ(pauses.count, 6);
  EXPECT_NEAR(pauses.mean_s, 50e-3, 1e-9);
  EXPECT_NEAR(pauses.share, 1, 1e-9);
  EXPECT_NEAR(pauses.burst_steps, 10, 0.1);
  MadeUpRun even;
  EXPECT_EQ(measure_run(even.run(), 4, even.run().windows).pauses.count, 0);
}

// The same, but worker 0 reads half of the rows itself, from memory, in the millisecond before.
TEST(RunMeasurements, AReadFromMemoryIsTheWorkers) {
  MadeUpRun made;
  for (TrackedSpan& span : made.run().spans) {
    if (span.kind != SpanKind::read || span.sample % 2 == 1) continue;
    span.kind = SpanKind::cached_read;
    span.track = 1;
    span.end_ns = span.begin_ns;
    span.begin_ns -= kMs / 2;
  }
  const RunMeasurements measured =
      measure_run(made.run(), 4, windows_of(made.run(), Phase::measured));
  EXPECT_NEAR(measured.cached_share, 0.5, 0.02);
  EXPECT_NEAR(measured.busy_readers, 2 * 0.5 / 10, 0.01);
  EXPECT_NEAR(measured.busy_workers, (4 * 1.5 + 2 * 0.5) / 10, 0.02);
  ASSERT_GE(measured.fill_cpu_s.size(), 30u);
  EXPECT_NEAR(measured.fill_cpu_s[10] + measured.fill_cpu_s[11], 2 * 0.75e-3 + 0.1e-3, 1e-9);
}

TEST(RunMeasurements, TellsCpuTimeFromWallTimeAndPixelsFromDecoding) {
  MadeUpRun made;
  const RunMeasurements measured =
      measure_run(made.run(), 4, windows_of(made.run(), Phase::measured));
  ASSERT_EQ(measured.fill_cpu_s.size(), 40u);
  EXPECT_NEAR(measured.fill_cpu_s[3], 0.75e-3, 1e-9);
  EXPECT_NEAR(measured.worker_cpu_speed, 0.5, 1e-9);
  EXPECT_NEAR(measured.pixels_share, 1.0 / 3, 1e-9);
  EXPECT_NEAR(measured.busy_workers, 40 * 1.5 / 101, 1e-6);
  EXPECT_NEAR(measured.latency[static_cast<int>(SpanKind::decode)].p99, 1e-3, 1e-9);
}

// The rows took 30 ms of CPU time, the workers' threads 33 ms, for which they waited 67 ms.
TEST(RunMeasurements, WhatWorkersDoBetweenTwoRowsIsPartOfARow) {
  MadeUpRun made;
  made.run().windows[0].load.threads = {{"worker 0", 33 * kMs, 67 * kMs},
                                        {"replica 0", 50 * kMs, 50 * kMs}};
  RunMeasurements measured = measure_run(made.run(), 4, {made.run().windows[0]});
  EXPECT_NEAR(measured.fill_cpu_s[3], 1.1 * 0.75e-3, 1e-9);
  EXPECT_NEAR(measured.worker_cores, 0.033 / 0.101, 1e-6);
  EXPECT_NEAR(measured.worker_cpu_speed, 0.33, 1e-9);
  // A worker that spins while it waits does not work.
  made.run().windows[0].load.threads = {{"worker 0", 100 * kMs, 0}};
  measured = measure_run(made.run(), 4, {made.run().windows[0]});
  EXPECT_NEAR(measured.fill_cpu_s[3], 1.25 * 0.75e-3, 1e-9);
  EXPECT_NEAR(measured.worker_cpu_speed, 0.5, 1e-9);
}

TEST(RunMeasurements, NamesTheSlowestFile) {
  MadeUpRun made;
  made.add(SpanKind::decode, 1, 3, 95 * kMs, 99 * kMs, 777, kMs);
  made.add(SpanKind::pixels, 1, 3, 99 * kMs, 100 * kMs, 777, kMs);
  const RunMeasurements measured =
      measure_run(made.run(), 4, windows_of(made.run(), Phase::measured));
  ASSERT_FALSE(measured.slowest.empty());
  EXPECT_EQ(measured.slowest[0].sample, 777);
  EXPECT_NEAR(measured.slowest[0].fill, 5e-3, 1e-9);
}

// While the ring is draining, fewer rows are filled than taken: the feed's pace is the lower one.
TEST(RunMeasurements, APaceThatLivesOnTheRingIsNotTheFeeds) {
  MadeUpRun made;
  std::erase_if(made.run().spans, [](const TrackedSpan& span) {
    return span.kind == SpanKind::commit && span.step >= 5;
  });
  const RunMeasurements measured =
      measure_run(made.run(), 4, windows_of(made.run(), Phase::measured));
  EXPECT_NEAR(measured.samples_per_second, 5 * 4 / 0.101, 1);
}

TEST(WarmUp, SaysWhatWasSlowAndWhatWasLeftOut) {
  MadeUpRun made;
  ProfiledRun& run = made.run();
  for (TrackedSpan& span : run.spans) {  // the first step took 15 ms more
    if (span.kind == SpanKind::step && span.step == 0) span.begin_ns -= 15 * kMs;
  }
  run.windows = {{Phase::warm_up, -15 * kMs, 35 * kMs, 1, {}},
                 {Phase::measured, 35 * kMs, 101 * kMs, 1, {}}};
  const WarmUp warm_up = measure_warm_up(run);
  EXPECT_EQ(warm_up.steps, 1);
  EXPECT_NEAR(warm_up.seconds, 25e-3, 1e-9);
  EXPECT_EQ(warm_up.left_out_steps, 3);
  EXPECT_NEAR(warm_up.left_out_s, 50e-3, 1e-9);
  EXPECT_EQ(measure_run(run, 4, windows_of(run, Phase::measured)).spread, -1);  // too few steps
}

TEST(TraceFile, ABatchIsFollowedFromFileToStepByItsNumber) {
  MadeUpRun made;
  std::string text;
  const int64_t events = write_trace([&](std::string_view piece) { text += piece; }, made.run(),
                                     [](SampleId id) { return "a \"b\\" + std::to_string(id); });
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(std::ssize(json["traceEvents"]), events);
  std::map<std::string, int> way;
  bool named = false, filed = false;
  for (const auto& event : json["traceEvents"]) {
    const std::string phase = event["ph"];
    if (event.value("cat", "") == "way" && event["id"] == "0.7") ++way[phase];
    named |= phase == "M" && event["args"]["name"] == "worker 0";
    filed |= phase == "X" && event["name"] == "read" && event["args"]["file"] == "a \"b\\30" &&
             event["args"]["step"] == 7;
  }
  EXPECT_EQ(way["s"], 1);
  EXPECT_GE(way["t"], 1);
  EXPECT_EQ(way["f"], 1);
  EXPECT_TRUE(named);
  EXPECT_TRUE(filed);
}

TEST(ProfileEmulated, GoesThroughAllPhasesAndDiagnoses) {
  const auto source = make_synthetic_source(1000, {16, 16}, 3, 1);
  const AugmentSpec augment("random_crop(padding=2, mode='reflect')", {16, 16});
  LoaderOptions options;
  options.batch_size = 10;
  options.feed.workers = 1;
  options.epochs = -1;
  FeedRun how;
  how.demand = 2000;
  how.seconds = 1;
  ProfiledRun run;
  const Profile profile = profile_emulated(*source, augment, options, how, run);
  for (const Phase phase :
       {Phase::warm_up, Phase::measured, Phase::other_workers, Phase::replayed}) {
    EXPECT_FALSE(windows_of(run, phase).empty()) << to_string(phase);
  }
  EXPECT_EQ(run.dropped, 0);
  EXPECT_GT(profile.measurements.measured.steps, 0);
  EXPECT_GT(profile.measurements.replayed.steps, 0);
  EXPECT_EQ(profile.measurements.other_workers, 2);
  EXPECT_LE(profile.measurements.measured.samples_per_second, 2100);
  EXPECT_FALSE(profile.timeline.empty());
  EXPECT_GT(profile.planned_bytes, 0);
  EXPECT_EQ(profile_json(profile)["format"], "stoker profile 2");
  EXPECT_FALSE(verdict_lines(profile).empty());
}

}  // namespace
}  // namespace stoker
