// Tests of whole runs whose gradients travel in fewer bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"
#include "tests/train/processes_fixture.h"
#include "train/run/run_start.h"

namespace stoker {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

TrainOptions wire_options(GradWire wire, int replicas) {
  TrainOptions options = small_options(replicas);
  options.grad_wire = wire;
  return options;
}

uint64_t hash_of_processes(int processes, const TrainOptions& options) {
  const ProcessesOutcome outcome =
      run_processes(processes, options, fake_engines(), *small_source());
  expect_clean(outcome);
  for (const uint64_t hash : outcome.hashes) EXPECT_EQ(hash, outcome.hashes[0]);
  return outcome.hashes[0];
}

TEST(WireRun, DependsOnTheReplicasAndNotOnTheirProcesses) {
  const uint64_t exact = run_once(small_options(4), fake_engines()).hash;
  for (const GradWire wire : {GradWire::bf16, GradWire::int8, GradWire::one_bit}) {
    const uint64_t threads = run_once(wire_options(wire, 4), fake_engines()).hash;
    EXPECT_NE(threads, exact) << to_string(wire);
    EXPECT_EQ(run_once(wire_options(wire, 4), fake_engines()).hash, threads);
    EXPECT_EQ(hash_of_processes(2, wire_options(wire, 2)), threads) << to_string(wire);
    EXPECT_EQ(hash_of_processes(4, wire_options(wire, 1)), threads) << to_string(wire);
  }
}

TEST(WireRun, LearnsAsFp32Does) {
  const double exact = run_once(small_options(2), fake_engines()).result.loss;
  for (const GradWire wire : {GradWire::bf16, GradWire::int8, GradWire::one_bit}) {
    const double loss = run_once(wire_options(wire, 2), fake_engines()).result.loss;
    EXPECT_NEAR(loss, exact, 0.2) << to_string(wire);
  }
}

TEST(WireRun, ResumesExactly) {
  for (const GradWire wire : {GradWire::bf16, GradWire::int8, GradWire::one_bit}) {
    const uint64_t whole = run_once(wire_options(wire, 2), fake_engines()).hash;
    for (const int processes : {1, 2}) {
      const TempFolder folder;
      TrainOptions options = wire_options(wire, 2);
      options.out = folder.path();
      options.max_steps = 7;
      run_once(options, fake_engines());
      options.max_steps = 0;
      options.resume = true;
      options.replicas = 2 / processes;
      const uint64_t resumed = processes == 1 ? run_once(options, fake_engines()).hash
                                              : hash_of_processes(processes, options);
      EXPECT_EQ(resumed, whole) << to_string(wire) << ' ' << processes;
    }
  }
}

TEST(WireRun, SavesTheResidualsOfAllProcesses) {
  TrainState states[2];
  for (const int processes : {1, 2}) {
    const TempFolder folder;
    TrainOptions options = wire_options(GradWire::int8, 2 / processes);
    options.out = folder.path();
    options.max_steps = 7;
    processes == 1 ? run_once(options, fake_engines()).hash : hash_of_processes(2, options);
    CheckpointInfo info;
    load_checkpoint(newest_checkpoint(folder.path() + "/checkpoints"), info, states[processes - 1]);
  }
  EXPECT_EQ(states[0].residual_replicas, 2);
  EXPECT_GT(states[0].residuals.size(), 0u);
  EXPECT_EQ(states[0].residuals, states[1].residuals);
}

// Runs 7 steps with two replicas, and returns the options to go on with.
TrainOptions begin_run(GradWire wire, const TempFolder& folder) {
  TrainOptions options = wire_options(wire, 2);
  options.out = folder.path();
  options.max_steps = 7;
  run_once(options, fake_engines());
  options.resume = true;
  return options;
}

// Goes on to `step` and returns the plan of the resumed run.
std::vector<std::string> plan_of_resumed(TrainOptions options, int64_t step) {
  options.max_steps = step;
  RecordingObserver observer;
  Trainer(*small_source(), nullptr, options, observer, fake_engines()).run();
  return observer.plan;
}

TEST(WireRun, SaysWhatHappensToResidualsOfOtherReplicas) {
  const TempFolder folder;
  TrainOptions options = begin_run(GradWire::int8, folder);
  options.replicas = 4;
  EXPECT_THAT(plan_of_resumed(options, 8),
              Contains(HasSubstr("of 2 replicas is sent by the first of 4")));
  options.grad_wire = GradWire::fp32;
  EXPECT_THAT(plan_of_resumed(options, 9),
              Contains(HasSubstr("is left out: this run's --grad-wire keeps")));
}

TEST(WireRun, SaysWhatChangedSinceTheCheckpoint) {
  const TempFolder folder;
  TrainOptions options = begin_run(GradWire::bf16, folder);
  EXPECT_THAT(plan_of_resumed(options, 8), Not(Contains(HasSubstr("changed since"))));
  options.grad_wire = GradWire::fp32;
  options.accumulate = 2;
  EXPECT_THAT(plan_of_resumed(options, 9),
              Contains(HasSubstr("changed since the checkpoint: grad_wire: bf16 -> fp32, "
                                 "accumulate: 1 -> 2")));
  EXPECT_THAT(plan_of_resumed(options, 10), Not(Contains(HasSubstr("changed since"))));
}

TEST(WireRun, ResidualsKeepTheirSumWhenReplicasChange) {
  TrainState state;
  state.residuals = {1, 2, 10, 20, 100, 200};
  state.residual_replicas = 2;
  TrainState same = state;
  EXPECT_EQ(fit_residuals(same, 2, 2), "");
  EXPECT_EQ(same.residuals, state.residuals);
  TrainState more = state;
  EXPECT_NE(fit_residuals(more, 3, 2), "");
  EXPECT_EQ(more.residuals, (std::vector<float>{11, 22, 0, 0, 0, 0, 100, 200}));
  EXPECT_EQ(more.residual_replicas, 3);
  TrainState other = state;
  EXPECT_THAT(fit_residuals(other, 2, 3), HasSubstr("has 2 floats of each replica"));
  EXPECT_TRUE(other.residuals.empty());
}

TEST(WireRun, CountsItsBytesAsPlanned) {
  for (const GradWire wire : {GradWire::fp32, GradWire::bf16, GradWire::int8, GradWire::one_bit}) {
    const TempFolder folder;
    TrainOptions options = wire_options(wire, 4);
    options.out = folder.path();
    const RunOutcome outcome = run_once(options, fake_engines());
    const auto planned =
        nlohmann::json::parse(read_whole_file(folder.path() + "/config.json"))["bytes_per_step"];
    EXPECT_GT(planned["gradients_sent"], 0);
    EXPECT_EQ(planned["gradients_sent"], outcome.result.traffic.gradients_sent);
    for (const auto& row : metrics_of(folder.path(), "step")) {
      EXPECT_EQ(row["gradient_bytes_sent"], planned["gradients_sent"]) << to_string(wire);
      EXPECT_EQ(row["gradient_bytes_received"], planned["gradients_received"]);
      EXPECT_EQ(row["weight_bytes_sent"], 0);
    }
  }
}

TEST(WireRun, ALossThatIsNotFiniteEndsIt) {
  for (const GradWire wire : {GradWire::int8, GradWire::one_bit}) {
    try {
      run_once(wire_options(wire, 2), fake_engines({.nan_at_step = 3}, 1));
      ADD_FAILURE();
    } catch (const TrainingFailed& failed) {
      EXPECT_THAT(failed.what(), HasSubstr("step 3: the loss or a gradient"));
    }
  }
}

}  // namespace
}  // namespace stoker
