#include "train/device/plan_builder.h"

namespace stoker {
namespace {

class NormSteps final : public DeviceSteps {
 public:
  explicit NormSteps(int index) : index_(index) {}

  void build_forward(DevicePlanBuilder& builder) override {
    describe(builder);
    const FusedNode& node = builder.node(index_);
    const bool training = builder.options().training;
    const int x = builder.value(node.input);
    const int residual = node.more_inputs.empty() ? -1 : builder.value(node.more_inputs[0]);
    int scratch = -1;
    if (training) {
      constexpr auto kPlanes = static_cast<int64_t>(NormPlane::count);
      planes_ = builder.new_buffer(kPlanes * shape_.channels * static_cast<int64_t>(sizeof(float)));
      scratch = builder.new_buffer(channel_scratch_bytes(shape_.channels));
    }
    const int y = builder.define_value(index_);
    if (training && residual >= 0 && shape_.activation == Activation::relu) {
      mask_ = builder.new_buffer(norm_mask_bytes(shape_));
    }
    const int sums = training ? builder.sums(node.input) : -1;
    // One pass sums x, unless the convolution did, and one applies the result.
    const int64_t passes = (training && sums < 0 ? 3 : 2) + (residual >= 0 ? 1 : 0);
    builder.append("norm", passes * builder.value_bytes(index_) + mask_bytes(),
                   [*this, training, x, residual, y, sums, scratch, ops = builder.ops(),
                    moments = builder.layout().moments()](const DeviceRun& run) {
                     NormForward a;
                     a.x = run.at(x);
                     a.residual = run.at(residual);
                     a.gamma = run.parameters + gamma_;
                     a.beta = run.parameters + beta_;
                     a.running_mean = run.statistics + statistics_;
                     a.running_variance = a.running_mean + shape_.channels;
                     a.y = run.at(y);
                     a.mask = run.at<uint8_t>(mask_);
                     if (!training) return ops->norm_inference(shape_, a);
                     a.planes = run.at<float>(planes_);
                     a.moments = run.gradients + moments + statistics_;
                     a.scratch = run.at(scratch);
                     a.sums = run.at<float>(sums);
                     ops->norm_training(shape_, a);
                   });
  }

  void build_backward(DevicePlanBuilder& builder) override {
    const FusedNode& node = builder.node(index_);
    const bool residual = !node.more_inputs.empty();
    const bool cut = mask_ >= 0;
    std::vector<int> incoming = builder.take_gradient(index_, 2);
    if (!builder.owned(incoming.front())) std::swap(incoming.front(), incoming.back());
    const int dy = builder.read(incoming[0]);
    const int dy2 = incoming.size() > 1 ? builder.read(incoming[1]) : -1;
    const int x = builder.value(node.input);
    if (cut) builder.read(mask_);
    const int planes = builder.read(planes_);
    const int scratch = builder.new_buffer(channel_scratch_bytes(shape_.channels));
    const bool changes = cut || dy2 >= 0;  // the residual's gradient differs from dy
    int dresidual = -1;
    if (residual && builder.wants_gradient(node.more_inputs[0])) {
      if (changes) {
        dresidual =
            builder.owned(dy) ? builder.write(dy) : builder.new_buffer(builder.value_bytes(index_));
      }
      builder.pass_gradient(node.more_inputs[0], changes ? dresidual : dy);
    }
    int dx = -1;
    if (builder.wants_gradient(node.input)) {
      dx = residual ? builder.new_gradient(node.input) : builder.gradient_over(node.input, dy);
    }
    builder.append("norm_back",
                   back_bytes(builder.value_bytes(index_), dy2 >= 0, dresidual >= 0, dx >= 0),
                   [*this, x, dy, dy2, dx, dresidual, planes, scratch,
                    ops = builder.ops()](const DeviceRun& run) {
                     NormBackward a;
                     a.x = run.at(x);
                     a.mask = run.at<uint8_t>(mask_);
                     a.dy = run.at(dy);
                     a.dy2 = run.at(dy2);
                     a.gamma = run.parameters + gamma_;
                     a.planes = run.at<float>(planes);
                     a.dgamma = run.gradients + gamma_;
                     a.dbeta = run.gradients + beta_;
                     a.dx = run.at(dx);
                     a.dresidual = run.at(dresidual);
                     a.scratch = run.at(scratch);
                     ops->norm_backward(shape_, a);
                   });
    for (const int buffer : incoming) builder.release(buffer);
  }

 private:
  int64_t mask_bytes() const { return mask_ < 0 ? 0 : norm_mask_bytes(shape_); }

  // Both passes read x and the incoming gradient. The first pass sums, and writes the residual's
  // gradient if there is one. The second pass reads that, or else the incoming gradient again, and
  // writes dx.
  int64_t back_bytes(int64_t tensor, bool two, bool left, bool applies) const {
    const int64_t arriving = tensor * (two ? 2 : 1) + mask_bytes();
    const int64_t sums = tensor + arriving + (left ? tensor : 0);
    return sums + (applies ? 2 * tensor + (left ? tensor : arriving) : 0);
  }

  void describe(DevicePlanBuilder& builder) {
    const FusedNode& node = builder.node(index_);
    shape_ = {builder.pixels(index_), node.shape.channels, builder.held().activations,
              builder.spec(index_).eps, node.activation};
    const GradientLayout& layout = builder.layout();
    const auto offset = [&](ParameterKind kind) { return layout.offset_of(node.node, kind); };
    gamma_ = offset(ParameterKind::norm_weight);
    beta_ = offset(ParameterKind::norm_bias);
    statistics_ = layout.statistics_of(node.node);
  }

  int index_;
  NormShape shape_;
  int64_t gamma_ = 0, beta_ = 0, statistics_ = 0;  // offsets
  int planes_ = -1, mask_ = -1;                    // buffers
};

}  // namespace

std::unique_ptr<DeviceSteps> make_device_norm(int index) {
  return std::make_unique<NormSteps>(index);
}

}  // namespace stoker
