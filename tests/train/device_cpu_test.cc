// Tests of the device engine against the CPU engine and PyTorch: steps, checkpoints, views.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/train/device_fixture.h"
#include "tests/train/golden_fixture.h"
#include "tests/train/sync_norm_fixture.h"

namespace stoker {
namespace {

TEST(DeviceGoldenTest, WholeModelsAreAsPyTorchs) {
  const auto make = [](const NetSpec& net, const EngineOptions& options) {
    return make_device_engine(net, options);
  };
  const auto step = [](Engine& engine, const TestBatch& batch, const TestSgd& sgd) {
    device_step(engine, batch, sgd);
  };
  compare_with_pytorch("airnet", {1e-5, 1e-4, 1e-5, 1e-3}, make, step);
  compare_with_pytorch("airnet", {1e-5, 1e-4, 1e-5, 1e-3}, make, step, true);
  compare_with_pytorch("resnet18", {1e-5, 5e-3, 1e-4, 1e-2}, make, step);
}

struct Pair {
  NetSpec net;
  EngineOptions options;
};

std::vector<Pair> pairs() {
  return {{make_net("resnet18", {33, 33}, 10, {{8, 16, 16, 32}}), engine_options(8, 8)},
          {make_net("resnet20", {16, 16}, 10), engine_options(8, 4)},
          {make_net("airnet", {32, 32}, 10, {{16, 24, 32}}), engine_options(8, 4)},
          {make_net("densenet40", {16, 16}, 10, {{16, 4}}), engine_options(8, 8)},
          {make_net("vgg16", {32, 32}, 10, {{8, 16, 16, 16, 16, 32}}), engine_options(8, 4)}};
}

// Training is chaotic. How far two runs may differ is measured with a third run, whose start
// differs only as much as a convolution by Winograd's algorithm does from a direct one.
std::vector<float> rounded_off(std::vector<float> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] *= 1.0f + (noise(7, static_cast<uint32_t>(i)) % 2 == 0 ? 1e-6f : -1e-6f);
  }
  return values;
}

void expect_near(const Trained& a, const Trained& b, const Trained& twin, const std::string& what) {
  const auto compare = [&](std::vector<float> Trained::*part, const char* name) {
    const double chaos = relative_distance(twin.*part, b.*part);
    EXPECT_LT(relative_distance(a.*part, b.*part), 1e-6 + 10 * chaos) << what << ", " << name;
  };
  compare(&Trained::parameters, "parameters");
  compare(&Trained::momenta, "momenta");
  compare(&Trained::statistics, "statistics");
}

TEST(DeviceCpuTest, TenStepsAreTheCpuEngines) {
  for (const Pair& pair : pairs()) {
    const auto cpu = started_engine(pair.net, pair.options);
    const auto twin = started_engine(pair.net, pair.options);
    twin->write(StateKind::parameters, rounded_off(read_state(*cpu, StateKind::parameters)));
    const auto device = started_device_engine(pair.net, pair.options);
    TestSgd sgd;
    sgd.learning_rate = 0.005f;
    double chaos = 0;
    for (int step = 0; step < 10; ++step) {
      TestBatch batch = make_batch(pair.net, pair.options.rows, 30 + step);
      if (step % 3 == 0) batch = with_mixed_labels(batch, pair.net, 70 + step);
      train_step(*cpu, batch, sgd);
      train_step(*twin, batch, sgd);
      device_step(*device, batch, sgd);
      const double loss = cpu->step_metrics().loss_sum;
      chaos = std::max(chaos, std::abs(loss - twin->step_metrics().loss_sum));
      EXPECT_NEAR(loss, device->step_metrics().loss_sum, 1e-5 * loss + 10 * chaos)
          << pair.net.name << " step " << step;
      if (step > 0 && step < 9) continue;
      expect_near(state_of(*device), state_of(*cpu), state_of(*twin),
                  pair.net.name + " after step " + std::to_string(step));
    }
  }
}

// For a residual net, whose masks are kept, and for one with convolutions that sum.
TEST(DeviceCpuTest, SynchronisedReplicasAreTheCpus) {
  const SyncShape shape{2, 2, 4};
  for (const NetSpec& net : {make_net("resnet18", {33, 33}, 10, {{8, 16, 16, 32}}),
                             make_net("airnet", {32, 32}, 10, {{16, 24, 32}})}) {
    HostOpsState states[2];
    for (HostOpsState& state : states) state.summing_convolutions = net.name == "airnet";
    const auto make = [&](const EngineOptions& options) { return started_engine(net, options); };
    MeetingReplicas cpu(net, shape, Precision::fp32, make), twin(net, shape, Precision::fp32, make);
    MeetingReplicas device(net, shape, Precision::fp32, [&](const EngineOptions& options) {
      return started_device_engine(net, options, {}, &states[options.rank]);
    });
    twin->write(StateKind::parameters, rounded_off(read_state(cpu[0], StateKind::parameters)));
    TestSgd sgd;
    sgd.learning_rate = 0.005f;
    for (uint32_t step = 0; step < 3; ++step) {
      cpu->step(step, sgd);
      twin->step(step, sgd);
      device->step(step, sgd);
      const double loss = cpu[1].step_metrics().loss_sum;
      const double chaos = std::abs(loss - twin[1].step_metrics().loss_sum);
      EXPECT_NEAR(device[1].step_metrics().loss_sum, loss, 1e-5 * loss + 10 * chaos) << net.name;
      expect_near(state_of(device[1]), state_of(cpu[1]), state_of(twin[1]), net.name);
    }
  }
}

// States that one engine has written give the same logits in the other, for every view.
TEST(DeviceCpuTest, StatesMoveBetweenTheEngines) {
  for (const Pair& pair : pairs()) {
    const auto cpu = started_engine(pair.net, pair.options);
    const auto device = started_device_engine(pair.net, pair.options);
    const TestBatch batch = make_batch(pair.net, pair.options.rows, 3);
    const auto move = [&](const Engine& from, Engine& to) {
      for (const StateKind kind : {StateKind::parameters, StateKind::statistics}) {
        to.write(kind, read_state(from, kind));
      }
    };
    const auto same_logits = [&] {
      for (const View& view : {View{}, View{true, 0, 0}, View{false, -1, 1}, View{true, 2, -2}}) {
        std::vector<float> a(static_cast<size_t>(pair.options.rows) * pair.net.classes), b(a);
        cpu->forward(batch.rows(), view, false, a);
        device->forward(batch.rows(), view, false, b);
        EXPECT_LT(relative_distance(a, b), 1e-5) << pair.net.name;
      }
    };
    train_step(*cpu, batch);
    move(*cpu, *device);
    same_logits();
    device_step(*device, batch);
    move(*device, *cpu);
    same_logits();
  }
}

TEST(DeviceCpuTest, Bf16StaysNearFp32) {
  for (const Pair& pair : pairs()) {
    EngineOptions bf16 = pair.options;
    bf16.precision = Precision::bf16;
    const auto wide = started_engine(pair.net, pair.options);
    const auto device = started_device_engine(pair.net, bf16);
    const TestBatch batch = make_batch(pair.net, pair.options.rows, 3);
    std::vector<float> a(static_cast<size_t>(pair.options.rows) * pair.net.classes), b(a);
    wide->forward(batch.rows(), {}, false, a);
    device->forward(batch.rows(), {}, false, b);
    EXPECT_LT(relative_distance(b, a), 0.03) << pair.net.name;
    train_step(*wide, batch);
    device_step(*device, batch);
    EXPECT_NEAR(device->step_metrics().loss_sum, wide->step_metrics().loss_sum,
                0.02 * wide->step_metrics().loss_sum);
    EXPECT_LT(relative_distance(read_state(*device, StateKind::statistics),
                                read_state(*wide, StateKind::statistics)),
              0.02);
  }
}

}  // namespace
}  // namespace stoker
