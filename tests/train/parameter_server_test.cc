// Tests of runs whose weights lie with a parameter server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"
#include "tests/train/processes_fixture.h"
#include "train/model/models.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;

TrainOptions server_options(int replicas, GradWire wire = GradWire::fp32) {
  TrainOptions options = small_options(replicas);
  options.reduce = ReduceKind::server;
  options.grad_wire = wire;
  return options;
}

TEST(ParameterServerRun, HasTheBitsOfAnAllReduce) {
  const auto source = small_source(), eval = small_source(23, 31);
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

TEST(ParameterServerRun, IsTheOneInHostMemory) {
  const auto source = small_source();
  uint64_t hashes[2] = {};
  for (const ReduceKind kind : {ReduceKind::server, ReduceKind::server_host}) {
    TrainOptions options = server_options(2);
    options.reduce = kind;
    RecordingObserver observer;
    Trainer trainer(*source, nullptr, options, observer, fake_engines());
    trainer.run();
    hashes[kind == ReduceKind::server_host] = trainer.weights_hash();
    EXPECT_THAT(observer.plan, ::testing::Contains(::testing::AllOf(
                                   HasSubstr(std::string("exchange: ") + to_string(kind) + ","),
                                   HasSubstr("; the server is in host memory"))));
  }
  EXPECT_EQ(hashes[0], hashes[1]);
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

TEST(ParameterServerRun, ServesOtherProcessesWithTheBitsOfAnAllReduce) {
  const auto source = small_source(), eval = small_source(23, 31);
  for (const AverageKind average : {AverageKind::none, AverageKind::ema, AverageKind::lookahead}) {
    for (const int accumulate : {1, 2}) {
      if (accumulate > 1 && average != AverageKind::none) continue;
      TrainOptions options = small_options(4);
      options.recipe.average.kind = average;
      const RunOutcome expected = run_once(options, fake_engines(), 70, eval.get());
      options.reduce = ReduceKind::server;
      // The order of a sum depends on the parts: so many of one replica are those of an all-reduce.
      options.accumulate = accumulate;
      TrainOptions all_reduce = options;
      all_reduce.reduce = ReduceKind::automatic;
      const uint64_t hash = run_once(all_reduce, fake_engines(), 70, eval.get()).hash;
      for (const auto& [processes, local] : {std::pair{2, 2}, {4, 1}}) {
        options.replicas = local;
        const ProcessesOutcome many =
            run_processes(processes, options, fake_engines(), *source, {.eval = eval.get()});
        for (size_t rank = 0; rank < many.hashes.size(); ++rank) {
          EXPECT_EQ(many.thrown[rank], "");
          EXPECT_EQ(many.hashes[rank], hash) << processes << " x " << local;
          ASSERT_TRUE(many.results[rank].eval);
          if (accumulate > 1) continue;
          EXPECT_EQ(many.results[rank].loss, expected.result.loss);
          EXPECT_EQ(many.results[rank].eval->loss, expected.result.eval->loss);
        }
      }
    }
  }
}

TEST(ParameterServerRun, ServesOtherProcessesOnTheCpuEngineToo) {
  if (!cpu_engine_available()) GTEST_SKIP() << "built without oneDNN";
  TrainOptions options = small_options(4);
  options.recipe.epochs = 1;
  const uint64_t expected = run_once(options, {}, 20).hash;
  options.reduce = ReduceKind::server;
  options.replicas = 2;
  for (const uint64_t hash : run_processes(2, options, {}, *small_source(20)).hashes) {
    EXPECT_EQ(hash, expected);
  }
}

// The messages and the sum are those of one process, in every format; so are the residuals.
TEST(ParameterServerRun, OfSeveralProcessesResumesExactly) {
  const auto source = small_source();
  for (const auto& [name, wire] : kGradWires) {
    const RunOutcome whole = run_once(server_options(4, wire), fake_engines());
    for (const int before : {1, 2}) {
      const TempFolder folder;
      TrainOptions options = server_options(4 / before, wire);
      options.out = folder.path();
      options.max_steps = 7;
      const ProcessesOutcome first = run_processes(before, options, fake_engines(), *source);
      EXPECT_EQ(first.thrown[0], "");
      options.max_steps = 0;
      options.resume = true;
      options.replicas = before;
      const ProcessesOutcome outcome = run_processes(4 / before, options, fake_engines(), *source);
      for (const uint64_t hash : outcome.hashes) EXPECT_EQ(hash, whole.hash) << name;
      const auto planned =
          nlohmann::json::parse(read_whole_file(folder.path() + "/config.json"))["bytes_per_step"];
      const Traffic& traffic = outcome.results[0].traffic;
      EXPECT_EQ(traffic, whole.result.traffic) << name;
      EXPECT_EQ(planned["gradients_sent"], traffic.gradients_sent);
      EXPECT_EQ(planned["weights_received"], traffic.weights_received);
      EXPECT_EQ(traffic.gradients_received + traffic.weights_sent, 0);
    }
  }
}

TEST(ParameterServerRun, OfSeveralProcessesEndsWithAnyOfThem) {
  const auto source = small_source();
  for (const int faulty : {0, 1}) {
    for (const bool nan : {false, true}) {
      ThreadProcesses group(2);
      const auto thrown = group.run([&](ProcessGroup& process) {
        TrainOptions mine = server_options(2);
        mine.processes = &process;
        FakeEngineFaults faults;
        if (process.rank() == faulty) (nan ? faults.nan_at_step : faults.throw_at_step) = 3;
        RecordingObserver observer;
        Trainer(*source, nullptr, mine, observer, fake_engines(faults, 1)).run();
      });
      for (const std::string& each : thrown) {
        EXPECT_THAT(each, HasSubstr(nan ? "step 3: the loss" : "told to throw"));
      }
    }
  }
}

TEST(ParameterServerRun, RefusesProcessesWithoutMessages) {
  const auto source = small_source();
  const auto outcome =
      run_processes(2, server_options(1), fake_engines(), *source, {.messages = false});
  EXPECT_THAT(outcome.thrown[0],
              HasSubstr("gets messages through MPI; these 2 processes have none"));
}

TEST(ParameterServerRun, AFailureEndsIt) {
  EXPECT_THROW(run_once(server_options(2), fake_engines({.throw_at_step = 3}, 1)), TrainingFailed);
  EXPECT_THROW(run_once(server_options(2), fake_engines({.nan_at_step = 3}, 1)), TrainingFailed);
}

}  // namespace
}  // namespace stoker
