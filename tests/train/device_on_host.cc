// Runs device engines under test on plain loops.
#include "tests/train/device_fixture.h"

namespace stoker {

std::string engine_problem() { return ""; }

std::unique_ptr<Engine> make_device_engine(const NetSpec& net, const EngineOptions& options,
                                           const DeviceTuning& tuning, HostOpsState* state) {
  return make_loop_engine(net, options, tuning, state);
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

}  // namespace stoker
