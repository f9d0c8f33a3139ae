// Runs device engines under test on plain loops.
#include "tests/train/device_fixture.h"

namespace stoker {

std::string device_problem() { return ""; }

std::unique_ptr<Engine> make_device_engine(const NetSpec& net, const EngineOptions& options,
                                           const DeviceTuning& tuning, HostOpsState* state) {
  return make_loop_engine(net, options, tuning, state);
}

BatchRows placed(Engine&, const TestBatch& batch) { return batch.rows(); }

}  // namespace stoker
