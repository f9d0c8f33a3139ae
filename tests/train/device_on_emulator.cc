// Runs device engines under test on the CUDA plugin's kernels, emulated on the CPU.
#include "tests/support/cuda_emulator.h"
#include "tests/train/device_fixture.h"

namespace stoker {

std::string engine_problem() { return ""; }

std::unique_ptr<Engine> make_device_engine(const NetSpec& net, const EngineOptions& options,
                                           const DeviceTuning& tuning, HostOpsState*) {
  return std::make_unique<DeviceEngine>(net, options, tuning, host_device(),
                                        emulated_cuda_ops_factory());
}

const TestedEngine& tested_engine() {
  static const TestedEngine device;
  return device;
}

std::unique_ptr<Engine> make_engine(const NetSpec& net, const EngineOptions& options) {
  return make_device_engine(net, options);
}

void edit_sum(Engine& engine, const std::function<void(std::span<float>)>& edit) {
  edit(engine.reduced_gradients());
}

BatchRows placed(Engine&, const TestBatch& batch) { return batch.rows(); }

INSTANTIATE_TEST_SUITE_P(Emulated, DeviceStepsTest,
                         ::testing::Values(Precision::fp32, Precision::bf16));

}  // namespace stoker
