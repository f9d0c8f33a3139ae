// Tests of the CUDA engine through its public header, on a GPU if there is one: against the CPU
// engine, and at full size.
#include <gmock/gmock.h>

#include <stdexcept>

#include "tests/support/temp_folder.h"
#include "tests/train/device_fixture.h"
#include "train/cuda/engine.h"
#include "train/device/memory.h"
#include "train/model/models.h"

namespace stoker {
namespace {

TEST(CudaEngineTest, AHostDeviceIsRefused) {
  const NetSpec net = make_net("airnet", {32, 32}, 10);
  EXPECT_THROW(make_cuda_engine(net, engine_options(8, 8), host_device()), std::exception);
}

TEST(CudaEngineTest, TheLargestBatchGrowsWithMemory) {
  const NetSpec net = make_net("resnet50", {224, 224}, 1000);
  const EngineOptions options = engine_options(8, 8, 1, Precision::bf16);
  const auto largest = [&](int64_t gib) {
    return largest_device_batch(net, options, {}, gib << 30, 2 * 224 * 224 * 3, 8);
  };
  EXPECT_EQ(largest(1), 0);
  EXPECT_GT(largest(80), 256);
  EXPECT_GT(largest(140), largest(80));
}

TEST(CudaEngineTest, StepsAreTheCpuEnginesAndStatesMove) {
  if (!engine_problem().empty()) GTEST_SKIP() << engine_problem();
  if (!cpu_engine_available()) GTEST_SKIP() << "this build has no CPU engine";
  for (const NetSpec& net :
       {make_net("resnet18", {64, 64}, 10), make_net("airnet", {32, 32}, 10)}) {
    const EngineOptions options = engine_options(16, 16);
    const auto cpu = started_engine(net, options);
    const auto gpu = started_device_engine(net, options);
    const TestBatch batch = make_batch(net, 16, 3);
    const BatchRows rows = placed(*gpu, batch);
    std::vector<float> a(160), b(160);
    cpu->forward(batch.rows(), {true, 1, -1}, false, a);
    gpu->forward(rows, {true, 1, -1}, false, b);
    EXPECT_LT(relative_distance(b, a), 1e-4) << net.name;
    train_step(*cpu, batch, {0.005f});
    gpu->forward_backward(rows);
    apply(*gpu, {0.005f});
    EXPECT_NEAR(gpu->step_metrics().loss_sum, cpu->step_metrics().loss_sum,
                1e-4 * cpu->step_metrics().loss_sum);
    const Trained left = state_of(*gpu), right = state_of(*cpu);
    EXPECT_LT(relative_distance(left.parameters, right.parameters), 1e-4) << net.name;
    EXPECT_LT(relative_distance(left.momenta, right.momenta), 1e-2) << net.name;
    EXPECT_LT(relative_distance(left.statistics, right.statistics), 1e-4) << net.name;
    gpu->write(StateKind::parameters, right.parameters);
    gpu->write(StateKind::statistics, right.statistics);
    cpu->forward(batch.rows(), {}, false, a);
    gpu->forward(rows, {}, false, b);
    EXPECT_LT(relative_distance(b, a), 1e-4) << net.name;
  }
}

// Returns the losses before and after ten steps on one batch.
std::pair<double, double> ten_steps(Engine& engine, const BatchRows& batch) {
  std::pair<double, double> losses;
  for (int step = 0; step < 10; ++step) {
    engine.forward_backward(batch);
    apply(engine, {0.02f});
    if (step == 0) losses.first = engine.step_metrics().loss_sum;
  }
  EXPECT_TRUE(engine.step_metrics().finite);
  losses.second = engine.step_metrics().loss_sum;
  return losses;
}

TEST(CudaEngineTest, Bf16LearnsAtFullSize) {
  if (!engine_problem().empty()) GTEST_SKIP() << engine_problem();
  const NetSpec net = make_net("resnet50", {224, 224}, 1000);
  const auto gpu = started_device_engine(net, engine_options(64, 64, 1, Precision::bf16));
  const auto [first, last] = ten_steps(*gpu, placed(*gpu, make_batch(net, 64, 3)));
  EXPECT_LT(last, 0.9 * first);
  EXPECT_GT(gpu->implementations().size(), 5u);
}

TEST(CudaEngineTest, Bf16LearnsWhatTheCpuLearnsInFp32) {
  if (!engine_problem().empty()) GTEST_SKIP() << engine_problem();
  if (!cpu_engine_available()) GTEST_SKIP() << "this build has no CPU engine";
  const NetSpec net = make_net("airnet", {32, 32}, 10);
  const TestBatch batch = make_batch(net, 512, 3);
  const auto gpu = started_device_engine(net, engine_options(512, 512, 1, Precision::bf16));
  const auto cpu = started_engine(net, engine_options(512, 512));
  const double ours = ten_steps(*gpu, placed(*gpu, batch)).second;
  const auto [first, last] = ten_steps(*cpu, batch.rows());
  EXPECT_LT(last, 0.97 * first);
  EXPECT_NEAR(ours, last, 0.2 * (first - last));
}

// The second engine times nothing: it restores every plan, also those that cuDNN compiled, and they
// compute the same.
TEST(CudaEngineTest, PlansComeBackFromTheCache) {
  if (!engine_problem().empty()) GTEST_SKIP() << engine_problem();
  const TempFolder folder;
  const NetSpec net = make_net("resnet18", {112, 112}, 10);
  const int rows = 256;  // large enough that a convolution with its sums is tried
  const TestBatch host = make_batch(net, rows, 3);
  DeviceTuning tuning;
  tuning.plan_cache = folder.path() + "/plans.txt";
  const auto run = [&](const std::string& expected) {
    const auto gpu =
        started_device_engine(net, engine_options(rows, rows, 1, Precision::bf16), tuning);
    const BatchRows batch = placed(*gpu, host);
    for (int step = 0; step < 3; ++step) {
      gpu->forward_backward(batch);
      apply(*gpu, {0.01f});
    }
    EXPECT_THAT(gpu->implementations(), ::testing::Contains(::testing::HasSubstr(expected)));
    return state_of(*gpu);
  };
  const Trained first = run("(0 plans kept");
  EXPECT_TRUE(first == run(", 0 timed)"));
}

}  // namespace
}  // namespace stoker
