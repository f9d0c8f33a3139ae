// Helpers for tests of device engines. The engine queues its work, so read its gradient buffers
// only after a synchronisation. Values.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/host_ops.h"
#include "tests/train/tested_engine.h"
#include "train/train_types.h"

namespace stoker {

// Each program defines it, beside what tested_engine.h asks for.
std::unique_ptr<Engine> make_device_engine(const NetSpec& net, const EngineOptions& options,
                                           const DeviceTuning& tuning = {},
                                           HostOpsState* state = nullptr);

inline Device& host_device() {
  static const std::unique_ptr<Device> device = make_host_device();
  return *device;
}

inline std::unique_ptr<Engine> make_loop_engine(const NetSpec& net, const EngineOptions& options,
                                                const DeviceTuning& tuning = {},
                                                HostOpsState* state = nullptr) {
  return std::make_unique<DeviceEngine>(net, options, tuning, host_device(),
                                        host_ops_factory(state));
}

// `states` may be null, or has one for every replica, and one for the server where there is one.
inline EngineFactory loop_engines(std::vector<HostOpsState>* states = nullptr) {
  return [states](const NetSpec& net, const EngineOptions& engine, int replica) {
    return make_device_engine(net, engine, {},
                              states ? &states->at(static_cast<size_t>(replica)) : nullptr);
  };
}

inline std::unique_ptr<Engine> started_device_engine(const NetSpec& net,
                                                     const EngineOptions& options,
                                                     const DeviceTuning& tuning = {},
                                                     HostOpsState* state = nullptr) {
  auto engine = make_device_engine(net, options, tuning, state);
  engine->write(StateKind::parameters, initial_parameters(net, {1}));
  return engine;
}

// Runs one step of one rank, whose gradient buffer is already the sum. Queues; `batch` must outlive
// the work.
inline void device_step(Engine& engine, const TestBatch& batch, const TestSgd& sgd = {}) {
  engine.forward_backward(placed(engine, batch));
  apply(engine, sgd);
}

// Each program instantiates it under a name that says what runs the operations.
class DeviceStepsTest : public ::testing::TestWithParam<Precision> {
 protected:
  void SetUp() override {
    if (!engine_problem().empty()) GTEST_SKIP() << engine_problem();
  }
};

inline double relative_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
    size += static_cast<double>(b[i]) * b[i];
  }
  return size > 0 ? std::sqrt(difference / size) : std::sqrt(difference);
}

}  // namespace stoker
