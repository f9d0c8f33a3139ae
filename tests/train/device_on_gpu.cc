// Runs device engines under test on the first GPU.
#include "staging/device_list.h"
#include "tests/train/device_fixture.h"
#include "train/cuda/engine.h"

namespace stoker {
namespace {

struct Gpu {
  std::string problem;
  std::unique_ptr<Device> device;
};

const Gpu& gpu() {
  static const Gpu found = [] {
    Gpu gpu;
    gpu.problem = query_cuda().problem;
    if (gpu.problem.empty()) gpu.problem = cuda_engine_problem();
    if (gpu.problem.empty()) gpu.device = make_cuda_device(0);
    return gpu;
  }();
  return found;
}

template <typename Number>
const Number* upload(Engine& engine, const std::vector<Number>& values) {
  static std::vector<std::unique_ptr<Memory>> kept;
  const size_t bytes = values.size() * sizeof(Number);
  const auto pinned = gpu().device->allocate(bytes, MemoryKind::pinned);
  kept.push_back(gpu().device->allocate(bytes, MemoryKind::device));
  std::copy_n(reinterpret_cast<const std::byte*>(values.data()), bytes, pinned->data());
  engine.stream()->copy(kept.back()->data(), pinned->data(), bytes, CopyKind::host_to_device);
  engine.stream()->synchronize();
  return reinterpret_cast<const Number*>(kept.back()->data());
}

}  // namespace

std::string engine_problem() { return gpu().problem; }

std::unique_ptr<Engine> make_device_engine(const NetSpec& net, const EngineOptions& options,
                                           const DeviceTuning& tuning, HostOpsState*) {
  return make_cuda_engine(net, options, *gpu().device, tuning);
}

const TestedEngine& tested_engine() {
  static const TestedEngine device;
  return device;
}

std::unique_ptr<Engine> make_engine(const NetSpec& net, const EngineOptions& options) {
  return make_device_engine(net, options);
}

void edit_sum(Engine& engine, const std::function<void(std::span<float>)>& edit) {
  const std::span<float> sum = engine.reduced_gradients();
  const auto pinned = gpu().device->allocate(sum.size_bytes(), MemoryKind::pinned);
  engine.stream()->copy(pinned->data(), sum.data(), sum.size_bytes(), CopyKind::device_to_host);
  engine.stream()->synchronize();
  edit({reinterpret_cast<float*>(pinned->data()), sum.size()});
  engine.stream()->copy(sum.data(), pinned->data(), sum.size_bytes(), CopyKind::host_to_device);
  engine.stream()->synchronize();
}

BatchRows placed(Engine& engine, const TestBatch& batch) {
  BatchRows rows{upload(engine, batch.images), upload(engine, batch.labels),
                 upload(engine, batch.weights)};
  rows.position = batch.position;
  if (!batch.targets.empty()) rows.targets = upload(engine, batch.targets);
  if (batch.mix_labels.empty()) return rows;
  rows.mix_labels = upload(engine, batch.mix_labels);
  rows.mix_weights = upload(engine, batch.mix_weights);
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Cuda, DeviceStepsTest,
                         ::testing::Values(Precision::fp32, Precision::bf16));

}  // namespace stoker
