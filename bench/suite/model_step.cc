#include <vector>

#include "bench/suite/step_work.h"
#include "train/collective/collective.h"
#include "train/cuda/engine.h"
#include "train/engine/engine.h"
#include "train/model/initialise.h"
#include "train/model/models.h"

namespace stoker {
namespace {

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
