// The engine that the suites test: gradient_test.cc, optimizer_test.cc, engine_state_test.cc and
// sync_norm_test.cc. Each program links one file that defines it: engine_on_cpu.cc,
// device_on_host.cc (plain loops), device_on_emulator.cc or device_on_gpu.cc. Tests of what only
// one engine has are in files of their own. Values.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/train/engine_fixture.h"
#include "train/model/models.h"
#include "train/model/net_builder.h"

namespace stoker {

inline NetSpec small_airnet() { return make_net("airnet", {32, 32}, 10, {{8, 8, 16}}); }

inline NetSpec tiny_net() {
  NetBuilder net("tiny", {12, 12}, 10);
  int x = net.conv("conv", 0, 8, 3, 1, 1);
  x = net.plain(OpKind::relu, net.batch_norm("norm", x, 1e-5f, 0.1f));
  net.linear("fc", net.adaptive_avg_pool(x, {1, 1}), true, 1.0f);
  return net.finish();
}

// The demands of the suites on an engine; by default, those on a device engine.
struct TestedEngine {
  std::vector<Precision> precisions{Precision::fp32, Precision::bf16};

  // For nets of states, and of batches in parts.
  NetSpec small_net = small_airnet(), parts_net = tiny_net();

  // Channels that fill whole groups of a kernel's width, and parts of groups.
  std::vector<int> channels{8, 7, 5};
  // oneDNN 2.6 computes them wrong, so that the engine refuses them.
  bool refuses_odd_pixel_convolutions = false;
  // For all gradients of a net that grows by concatenation; 0: its tensors are compared.
  double growing_cosine = 0;
  // Whole nets whose directions are compared in bf16, too.
  std::vector<std::string> bf16_models{"airnet"};

  // Memory comes in pieces of so many bytes. Norms of gradients may take some.
  int64_t piece_bytes = 256;
  std::pair<int64_t, int64_t> norm_bytes{1, 1024};
  bool part_takes_less = false;  // than the whole batch, not only no more

  // How far logits may be from those of an engine that was made otherwise.
  double same_logits = 0, same_bf16_logits = 0;

  // Threads of replicas, in turn, for runs of the same bits.
  std::vector<std::vector<int>> workers{{1}, {1}, {1}};
  int sync_workers = 1;
  // Replicas that are one engine, and their steps.
  int sync_replicas = 2;
  uint32_t sync_steps = 2;
};
const TestedEngine& tested_engine();

std::string engine_problem();  // why nothing can be tested, or ""
std::unique_ptr<Engine> make_engine(const NetSpec& net, const EngineOptions& options);
// Returns the batch in the engine's memory, valid as long as `batch` or the program.
BatchRows placed(Engine& engine, const TestBatch& batch);
// Changes the reduced gradients, which may lie in a GPU.
void edit_sum(Engine& engine, const std::function<void(std::span<float>)>& edit);

class OnTestedEngine : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!engine_problem().empty()) GTEST_SKIP() << engine_problem();
  }
};

inline std::unique_ptr<Engine> make_started_engine(const NetSpec& net,
                                                   const EngineOptions& options) {
  auto engine = make_engine(net, options);
  engine->write(StateKind::parameters, initial_parameters(net, {1}));
  return engine;
}

// Forward, backward and the sum over micro-batches, which an engine with a stream has made itself.
// It may queue: `batch` must outlive the work.
inline void queue_pass(Engine& engine, const TestBatch& batch) {
  engine.forward_backward(placed(engine, batch));
  if (!engine.stream()) reduce(engine);
}
inline void run_pass(Engine& engine, const TestBatch& batch) {
  queue_pass(engine, batch);
  if (engine.stream()) engine.stream()->synchronize();
}
inline void queue_step(Engine& engine, const TestBatch& batch, const TestSgd& sgd = {}) {
  queue_pass(engine, batch);
  apply(engine, sgd);
}

inline float first_of_sum(Engine& engine) {
  float first = 0;
  edit_sum(engine, [&](std::span<float> sum) { first = sum[0]; });
  return first;
}

}  // namespace stoker
