// Tests of runs whose weights lie with a parameter server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"
#include "tests/support/thread_processes.h"
#include "tests/train/run_fixture.h"
#include "train/model/models.h"

namespace stoker {
namespace {

using testing::HasSubstr;

TrainOptions server_options(int replicas, GradWire wire = GradWire::fp32) {
  TrainOptions options = small_options(replicas);
  options.reduce = ReduceKind::server;
  options.grad_wire = wire;
  return options;
}

TEST(ParameterServerRun, HasTheBitsOfAnAllReduce) {
  const auto eval = small_source(23, 31);
  for (const AverageKind average : {AverageKind::none, AverageKind::ema, AverageKind::lookahead}) {
    TrainOptions plain = small_options(2);
    plain.recipe.average.kind = average;
    for (const int replicas : {1, 2, 4}) {
      plain.replicas = replicas;
      const RunOutcome expected = run_once(plain, fake_engines(), 70, eval.get());
      TrainOptions options = server_options(replicas);
      options.recipe.average.kind = average;
      const RunOutcome outcome = run_once(options, fake_engines(), 70, eval.get());
      EXPECT_EQ(outcome.hash, expected.hash) << replicas;
      EXPECT_EQ(outcome.result.loss, expected.result.loss);
      EXPECT_EQ(outcome.result.eval->top1, expected.result.eval->top1);
      EXPECT_EQ(outcome.result.eval->loss, expected.result.eval->loss);
    }
  }
}

TEST(ParameterServerRun, OnTheCpuEngineToo) {
  if (!cpu_engine_available()) GTEST_SKIP() << "built without oneDNN";
  TrainOptions options = small_options(2);
  options.recipe.epochs = 1;
  const uint64_t expected = run_once(options, {}, 20).hash;
  options.reduce = ReduceKind::server;
  EXPECT_EQ(run_once(options, {}, 20).hash, expected);
}

TEST(ParameterServerRun, ResumesExactlyAndUnderAnotherStrategy) {
  for (const GradWire wire : {GradWire::fp32, GradWire::int8}) {
    const uint64_t whole = run_once(server_options(2, wire), fake_engines()).hash;
    const TempFolder folder;
    TrainOptions options = server_options(2, wire);
    options.out = folder.path();
    options.max_steps = 7;
    run_once(options, fake_engines());
    options.max_steps = 0;
    options.resume = true;
    if (wire == GradWire::fp32) options.reduce = ReduceKind::automatic;
    EXPECT_EQ(run_once(options, fake_engines()).hash, whole) << to_string(wire);
  }
}

TEST(ParameterServerRun, CountsGradientsUpAndWeightsDown) {
  const NetSpec net = make_net("resnet20", {16, 16}, 5);
  const int64_t weights =
      4 * (total_count(parameter_table(net)) + total_count(statistics_table(net)));
  int64_t sent[2] = {};
  for (const GradWire wire : {GradWire::fp32, GradWire::int8}) {
    const TempFolder folder;
    TrainOptions options = server_options(4, wire);
    options.out = folder.path();
    const Traffic traffic = run_once(options, fake_engines()).result.traffic;
    const auto planned =
        nlohmann::json::parse(read_whole_file(folder.path() + "/config.json"))["bytes_per_step"];
    EXPECT_EQ(planned["gradients_sent"], traffic.gradients_sent);
    EXPECT_EQ(planned["weights_received"], traffic.weights_received);
    EXPECT_EQ(traffic.weights_received, weights);
    EXPECT_EQ(traffic.gradients_received + traffic.weights_sent, 0);
    sent[wire == GradWire::int8] = traffic.gradients_sent;
    EXPECT_EQ(metrics_of(folder.path(), "step")[0]["weight_bytes_received"], weights);
  }
  EXPECT_GT(sent[0], 2 * sent[1]);
}

TEST(ParameterServerRun, RefusesSeveralProcesses) {
  const auto source = small_source();
  ThreadProcesses group(2);
  const auto thrown = group.run([&](ProcessGroup& process) {
    TrainOptions options = server_options(1);
    options.processes = &process;
    RecordingObserver observer;
    Trainer(*source, nullptr, options, observer, fake_engines()).run();
  });
  EXPECT_THAT(thrown[0], HasSubstr("whose server is a thread of one process; there are 2"));
}

TEST(ParameterServerRun, AFailureEndsIt) {
  EXPECT_THROW(run_once(server_options(2), fake_engines({.throw_at_step = 3}, 1)), TrainingFailed);
  EXPECT_THROW(run_once(server_options(2), fake_engines({.nan_at_step = 3}, 1)), TrainingFailed);
}

}  // namespace
}  // namespace stoker
