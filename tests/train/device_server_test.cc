// Tests of runs whose weights lie with a parameter server on a device: engines with plain loops as
// operations, which queue their work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/fake_device.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thread_processes.h"
#include "tests/train/device_fixture.h"
#include "tests/train/run_fixture.h"
#include "train/device/memory.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kServerSamples = 36;  // three steps

TrainOptions all_reduce_options(int replicas) {
  TrainOptions options = small_options(replicas);
  options.recipe.epochs = 1;
  options.recipe.batch = 12;
  options.recipe.micro_batch_size = 4;
  return options;
}

TrainOptions device_server_options(int replicas) {
  TrainOptions options = all_reduce_options(replicas);
  options.reduce = ReduceKind::server;
  return options;
}

RunOutcome run_server(const TrainOptions& options, const EngineFactory& engines = loop_engines(),
                      const Source* eval = nullptr) {
  return run_once(options, engines, kServerSamples, eval);
}

std::string failure_of(const TrainOptions& options, const EngineFactory& engines) {
  try {
    run_server(options, engines);
  } catch (const TrainingFailed& error) {
    return error.what();
  }
  return "";
}

// All of an outcome that the place of the weights must not change.
void expect_same(const RunOutcome& outcome, const RunOutcome& expected) {
  EXPECT_EQ(outcome.hash, expected.hash);
  EXPECT_EQ(outcome.result.loss, expected.result.loss);
  EXPECT_EQ(outcome.result.accuracy, expected.result.accuracy);
  ASSERT_EQ(outcome.result.eval.has_value(), expected.result.eval.has_value());
  if (!expected.result.eval) return;
  EXPECT_EQ(outcome.result.eval->loss, expected.result.eval->loss);
  EXPECT_EQ(outcome.result.eval->top1, expected.result.eval->top1);
}

TEST(DeviceServer, HasTheBitsOfAnAllReduce) {
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adam}) {
    for (const int replicas : {1, 2, 3}) {
      TrainOptions options = all_reduce_options(replicas);
      options.recipe.optimizer = with_optimizer(options.recipe.optimizer, kind);
      const RunOutcome expected = run_server(options);
      options.reduce = ReduceKind::server;
      SCOPED_TRACE(replicas);
      expect_same(run_server(options), expected);
    }
  }
}

TEST(DeviceServer, AveragesWeightsAndEvaluatesThem) {
  const auto eval = small_source(11, 31);
  for (const AverageKind average : {AverageKind::ema, AverageKind::lookahead}) {
    TrainOptions options = all_reduce_options(2);
    options.recipe.epochs = 2;
    options.recipe.average.kind = average;
    const RunOutcome expected = run_server(options, loop_engines(), eval.get());
    options.reduce = ReduceKind::server_device;
    expect_same(run_server(options, loop_engines(), eval.get()), expected);
  }
}

// Gradients of two replicas are copied to the server in ranges while the backward pass runs.
TEST(DeviceServer, TakesBucketsPartsFrozenTensorsAndBf16) {
  TrainOptions options = all_reduce_options(3);
  options.recipe.optimizer.rate_factors = {{"conv1", 0}};
  options.recipe.optimizer.clip_norm = 0.5;
  options.recipe.precision = Precision::bf16;
  options.recipe.batch = 24;
  options.accumulate = 2;
  options.recipe.epochs = 2;
  const RunOutcome expected = run_server(options);
  options.reduce = ReduceKind::server;
  for (const int64_t bucket_bytes : {int64_t{0}, int64_t{4000}, int64_t{25} << 20}) {
    options.bucket_bytes = bucket_bytes;
    SCOPED_TRACE(bucket_bytes);
    expect_same(run_server(options), expected);
  }
}

// Copies and events of all streams come late, and what is not there yet is poison.
TEST(DeviceServer, WaitsForWhatIsLate) {
  testing::FakeDevice device({.max_delay_us = 30});
  const EngineFactory late = [&](const NetSpec& net, const EngineOptions& engine, int) {
    return std::make_unique<DeviceEngine>(net, engine, DeviceTuning{}, device, host_ops_factory());
  };
  TrainOptions options = all_reduce_options(2);
  options.recipe.average.kind = AverageKind::ema;
  const auto eval = small_source(11, 31);
  const RunOutcome expected = run_server(options, loop_engines(), eval.get());
  options.reduce = ReduceKind::server;
  for (const int64_t bucket_bytes : {0, 4000}) {
    options.bucket_bytes = bucket_bytes;
    expect_same(run_server(options, late, eval.get()), expected);
  }
  EXPECT_EQ(device.bytes_written_after_free(), 0);
}

TEST(DeviceServer, ResumesExactlyAndUnderAnotherStrategy) {
  TrainOptions options = device_server_options(2);
  options.recipe.epochs = 2;
  options.recipe.optimizer = with_optimizer(options.recipe.optimizer, OptimizerKind::adam);
  options.recipe.average.kind = AverageKind::ema;
  const uint64_t whole = run_server(options).hash;
  for (const ReduceKind then : {ReduceKind::server, ReduceKind::automatic}) {
    const TempFolder folder;
    TrainOptions parts = options;
    parts.out = folder.path();
    parts.max_steps = 4;
    run_server(parts);
    parts.max_steps = 0;
    parts.resume = true;
    parts.reduce = then;
    EXPECT_EQ(run_server(parts).hash, whole) << to_string(then);
  }
}

TEST(DeviceServer, CountsGradientsUpAndWeightsDown) {
  for (const int replicas : {1, 3}) {
    const TempFolder folder;
    TrainOptions options = device_server_options(replicas);
    options.out = folder.path() + "/run";
    const auto source = small_source(kServerSamples);
    RecordingObserver observer;
    int64_t gradients = 0, weights = 0;  // bytes
    const EngineFactory engines = [&](const NetSpec& net, const EngineOptions& engine, int) {
      auto made = make_device_engine(net, engine);
      gradients = 4 * made->gradient_buffer_floats();
      weights = 4 * (made->gradient_floats() + total_count(statistics_table(net)));
      return made;
    };
    Trainer trainer(*source, nullptr, options, observer, engines);
    const Traffic traffic = trainer.run().traffic;
    EXPECT_EQ(traffic, (Traffic{gradients, 0, 0, weights}));
    const auto planned =
        nlohmann::json::parse(read_whole_file(options.out + "/config.json"))["bytes_per_step"];
    EXPECT_EQ(planned["gradients_sent"], gradients);
    EXPECT_EQ(planned["weights_received"], weights);
    EXPECT_EQ(metrics_of(options.out, "step")[0]["weight_bytes_received"], weights);
    EXPECT_THAT(observer.plan,
                ::testing::Contains(::testing::AllOf(
                    HasSubstr("exchange: parameter-server, gradients as fp32; a replica sends 1."),
                    HasSubstr(" MiB in a step; the server is on cpu:0"))));
  }
}

// The server's engine queues its updates, and replicas only their passes.
TEST(DeviceServer, UpdatesWithoutMemoryForBatches) {
  std::vector<HostOpsState> states(3);
  std::vector<int64_t> bytes;
  int64_t planned = 0;  // by a batch that is chosen for a GPU
  const EngineFactory engines = [&](const NetSpec& net, const EngineOptions& engine, int replica) {
    auto made = loop_engines(&states)(net, engine, replica);
    bytes.push_back(made->planned_bytes());
    if (replica == 0) {
      planned = device_server_bytes(net, engine, 1) - 4 * made->gradient_buffer_floats();
    }
    return made;
  };
  TrainOptions options = device_server_options(2);
  options.bucket_bytes = 0;  // a pass is one graph
  run_server(options, engines);
  ASSERT_EQ(bytes.size(), 3u);
  EXPECT_LT(2 * bytes[2], bytes[0]);
  EXPECT_EQ(planned, bytes[2]);
  EXPECT_EQ(states[2].captures, 1);
  EXPECT_EQ(states[2].launches, 2);  // the first update is not captured
  EXPECT_EQ(states[0].captures, 1);
}

TEST(DeviceServer, StopsAtANumberThatIsNotFinite) {
  TrainOptions options = all_reduce_options(2);
  options.recipe.epochs = 5;
  options.recipe.optimizer.learning_rate = 1e30;
  options.recipe.schedule = {};
  const std::string expected = failure_of(options, loop_engines());
  EXPECT_THAT(expected, HasSubstr("is not finite"));
  options.reduce = ReduceKind::server;
  EXPECT_EQ(failure_of(options, loop_engines()), expected);
}

TEST(DeviceServer, AReplicaThatFailsEndsIt) {
  for (const int faulty : {0, 1, 2, 3}) {  // 3: the server
    std::vector<HostOpsState> states(4);
    states[static_cast<size_t>(faulty)].failing_launch = 1;
    TrainOptions options = device_server_options(3);
    options.recipe.epochs = 3;
    EXPECT_THAT(failure_of(options, loop_engines(&states)), HasSubstr("told to fail")) << faulty;
  }
}

TEST(DeviceServer, SaysThatItHasNoGraphs) {
  std::vector<HostOpsState> states(3);
  states[2].refuse_captures = true;
  const auto source = small_source(kServerSamples);
  RecordingObserver observer;
  Trainer(*source, nullptr, device_server_options(2), observer, loop_engines(&states)).run();
  EXPECT_THAT(observer.messages,
              ::testing::ElementsAre("warning: cpu:0: no graphs: captures are refused"));
}

std::string server_refusal(const TrainOptions& options, const EngineFactory& engines) {
  const auto source = small_source(kServerSamples);
  RecordingObserver observer;
  try {
    Trainer(*source, nullptr, options, observer, engines);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(DeviceServer, RefusesWhatItCannotHaveAndWritesNothing) {
  const TempFolder folder;
  TrainOptions options = device_server_options(2);
  options.out = folder.path() + "/run";
  options.reduce = ReduceKind::server_host;
  EXPECT_EQ(server_refusal(options, loop_engines()),
            "train: reduce is parameter-server:host, whose weights lie in host memory; those of "
            "cpu:0 lie on the device; take parameter-server:device");
  options.reduce = ReduceKind::server_device;
  EXPECT_EQ(server_refusal(options, fake_engines()),
            "train: reduce is parameter-server:device, whose weights lie on a device; those of "
            "cpu:0 lie in host memory; take parameter-server:host");
  for (const GradWire wire : {GradWire::bf16, GradWire::int8}) {
    options.grad_wire = wire;
    EXPECT_EQ(server_refusal(options, loop_engines()),
              std::string("train: grad_wire is ") + to_string(wire) +
                  ", but 2 replicas push fp32 gradients to a parameter server on cpu:0; "
                  "all-reduce:host carries it");
  }
  options.grad_wire = GradWire::fp32;
  options.replicas = 1;
  const auto thrown = ThreadProcesses(2).run([&](ProcessGroup& process) {
    TrainOptions mine = options;
    mine.processes = &process;
    const auto source = small_source(kServerSamples);
    RecordingObserver observer;
    Trainer(*source, nullptr, mine, observer, loop_engines());
  });
  EXPECT_THAT(thrown[0], HasSubstr("whose server on cpu:0 takes the gradients of one process; "
                                   "there are 2; take all-reduce"));
  EXPECT_FALSE(std::filesystem::exists(options.out));
}

}  // namespace
}  // namespace stoker
