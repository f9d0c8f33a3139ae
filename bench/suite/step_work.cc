#include "bench/suite/step_work.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

#include "train/collective/collective.h"
#include "train/cuda/engine.h"
#include "train/engine/engine.h"
#include "train/model/initialise.h"
#include "train/model/models.h"

namespace stoker {
namespace {

// The number of bytes that one kernel copies.
constexpr size_t kKernelBytes = size_t{64} << 20;

class Sleep final : public StepWork {
 public:
  Sleep(Device& device, double milliseconds)
      : stream_(device.make_stream()), milliseconds_(milliseconds) {}

  Stream& stream() override { return *stream_; }
  void queue(const DeviceBatch&) override {
    stream_->call([length = std::chrono::duration<double, std::milli>(milliseconds_)] {
      std::this_thread::sleep_for(length);
    });
  }
  std::string describe() const override { return "a sleep"; }

 private:
  const std::unique_ptr<Stream> stream_;
  const double milliseconds_;
};

class Kernels final : public StepWork {
 public:
  Kernels(Device& device, double milliseconds)
      : stream_(device.make_stream()),
        memory_(device.allocate(2 * kKernelBytes, MemoryKind::device)) {
    constexpr int kProbe = 20;
    const auto start = device.make_event(true), end = device.make_event(true);
    for (int pass = 0; pass < 2; ++pass) {  // the first one warms up
      stream_->record(*start);
      for (int i = 0; i < kProbe; ++i) kernel();
      stream_->record(*end);
      end->synchronize();
    }
    const double kernel_ms = end->elapsed_ms(*start) / kProbe;
    count_ = std::max(1, static_cast<int>(std::lround(milliseconds / kernel_ms)));
  }

  Stream& stream() override { return *stream_; }
  void queue(const DeviceBatch&) override {
    for (int i = 0; i < count_; ++i) kernel();
  }
  std::string describe() const override {
    return std::to_string(count_) + " copies of device memory";
  }

 private:
  void kernel() {
    stream_->copy(memory_->data() + kKernelBytes, memory_->data(), kKernelBytes,
                  CopyKind::device_to_device);
  }

  const std::unique_ptr<Stream> stream_;
  const std::unique_ptr<Memory> memory_;
  int count_ = 0;
};

constexpr int kModelClasses = 10;

EngineOptions options_for(const BatchShape& shape, Precision precision) {
  EngineOptions options;
  options.rows = options.micro_batch_size = shape.rows;
  options.nominal_rows = shape.rows;
  options.precision = precision;
  options.mean = {0.485f, 0.456f, 0.406f};
  options.stddev = {0.229f, 0.224f, 0.225f};
  return options;
}

class ModelStep : public StepWork {
 public:
  explicit ModelStep(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {
    const NetSpec& net = engine_->net();
    engine_->write(StateKind::parameters, initial_parameters(net, {1}));
    engine_->write(StateKind::statistics, initial_statistics(net));
    tensors_.assign(parameter_table(net).size(), {.learning_rate = 1e-3f});
  }

 protected:
  static BatchRows rows_of(const DeviceBatch& batch) {
    return {batch.images(), batch.labels(), batch.weights()};
  }
  Engine& engine() { return *engine_; }
  void update() { engine_->update({.tensors = tensors_, .momentum = 0.9f}); }

 private:
  const std::unique_ptr<Engine> engine_;
  std::vector<TensorUpdate> tensors_;
};

// The engine blocks, so the stream's own thread runs it, and events around it stay in order.
class OnHost final : public ModelStep {
 public:
  OnHost(Device& device, std::unique_ptr<Engine> engine)
      : ModelStep(std::move(engine)),
        collective_(make_host_collective(1)),
        stream_(device.make_stream()) {}

  Stream& stream() override { return *stream_; }
  void queue(const DeviceBatch& batch) override {
    stream_->call([this, rows = rows_of(batch)] {
      engine().forward_backward(rows);
      collective_->all_reduce(0, engine().gradient_buffers(), engine().reduced_gradients());
      update();
    });
  }
  std::string describe() const override { return "the model on the CPU engine"; }

 private:
  const std::unique_ptr<Collective> collective_;
  const std::unique_ptr<Stream> stream_;  // destroyed first
};

// There is one micro-batch, so its gradient buffer is the sum.
class OnDevice final : public ModelStep {
 public:
  using ModelStep::ModelStep;

  Stream& stream() override { return *engine().stream(); }
  void queue(const DeviceBatch& batch) override {
    engine().forward_backward(rows_of(batch));
    const float* part = engine().gradient_buffers().front();
    const std::span<float> sum = engine().reduced_gradients();
    if (sum.data() != part) {
      stream().copy(sum.data(), part, sum.size_bytes(), CopyKind::device_to_device);
    }
    update();
  }
  std::string describe() const override { return "the model on the CUDA engine"; }
};

}  // namespace

std::unique_ptr<StepWork> make_emulated_step(Device& device, double milliseconds) {
  if (device.cuda_ordinal() < 0) return std::make_unique<Sleep>(device, milliseconds);
  return std::make_unique<Kernels>(device, milliseconds);
}

std::unique_ptr<StepWork> make_model_step(Device& device, const std::string& model,
                                          const BatchShape& shape) {
  const NetSpec net = make_net(model, {shape.width, shape.height}, kModelClasses);
  if (device.cuda_ordinal() < 0) {
    const Precision precision = cpu_supports(Precision::bf16) ? Precision::bf16 : Precision::fp32;
    return std::make_unique<OnHost>(device, make_cpu_engine(net, options_for(shape, precision)));
  }
  return std::make_unique<OnDevice>(
      make_cuda_engine(net, options_for(shape, Precision::bf16), device));
}

}  // namespace stoker
