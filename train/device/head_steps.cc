#include "train/device/plan_builder.h"

namespace stoker {
namespace {

// A linear layer and its loss. Logits and loss are always fp32.
class DeviceHeadSteps final : public DeviceSteps {
 public:
  explicit DeviceHeadSteps(int index) : index_(index) {}

  void build_forward(DevicePlanBuilder& builder) override {
    describe(builder);
    const int x = builder.value(builder.node(index_).input);
    const int workspace = builder.workspace(kLinearWorkspaceBytes);
    const bool training = builder.options().training;
    if (training) logits_ = builder.new_buffer(logit_count() * kFloat);
    builder.append("linear", bytes(builder),
                   [*this, x, workspace, ops = builder.ops(), training,
                    number = bytes_of(builder.held().head)](const DeviceRun& run) {
                     ops->linear(shape_, run.at(x), run.weights + weight_ * number,
                                 bias_ < 0 ? nullptr : run.parameters + bias_,
                                 training ? run.at<float>(logits_) : run.logits, run.at(workspace));
                   });
    if (training) build_loss(builder);
  }

  void build_backward(DevicePlanBuilder& builder) override {
    const int input = builder.node(index_).input;
    const int x = builder.value(input), dlogits = builder.read(dlogits_);
    const int workspace = builder.workspace(kLinearWorkspaceBytes);
    const int dx = builder.wants_gradient(input) ? builder.new_gradient(input) : -1;
    builder.append("linear_back", back_bytes(builder, dx >= 0),
                   [*this, x, dlogits, dx, workspace, ops = builder.ops(),
                    number = bytes_of(builder.held().head)](const DeviceRun& run) {
                     ops->linear_backward(shape_, run.at(x), run.weights + weight_ * number,
                                          run.at(dlogits), run.gradients + weight_,
                                          bias_ < 0 ? nullptr : run.gradients + bias_, run.at(dx),
                                          run.at(workspace));
                   });
  }

 private:
  int64_t weight_count() const { return static_cast<int64_t>(shape_.classes) * shape_.features; }
  int64_t bytes(const DevicePlanBuilder& builder) const {
    return builder.value_bytes(builder.node(index_).input) +
           weight_count() * bytes_of(builder.held().head) + logit_count() * kFloat;
  }
  // The weights' gradient reads x and the gradient of the logits and writes fp32; the input's
  // gradient reads the gradient of the logits again, and the weights.
  int64_t back_bytes(const DevicePlanBuilder& builder, bool data) const {
    const int64_t input = builder.value_bytes(builder.node(index_).input);
    const int64_t logits = logit_count() * bytes_of(builder.held().head);
    const int64_t of_data =
        data ? logits + weight_count() * bytes_of(builder.held().head) + input : 0;
    return input + logits + weight_count() * kFloat + of_data;
  }
  int64_t logit_count() const { return static_cast<int64_t>(shape_.rows) * shape_.stride; }

  void describe(DevicePlanBuilder& builder) {
    const FusedNode& node = builder.node(index_);
    const int classes = node.shape.channels;
    shape_ = {builder.options().rows,
              builder.node(node.input).shape.channels,
              classes,
              logit_stride(classes),
              builder.spec(index_).scale,
              builder.held().head};
    const GradientLayout& layout = builder.layout();
    weight_ = layout.offset_of(node.node, ParameterKind::linear_weight);
    bias_ = layout.offset_of(node.node, ParameterKind::linear_bias);
  }

  void build_loss(DevicePlanBuilder& builder) {
    const LossShape loss{builder.net().loss,
                         shape_.rows,
                         shape_.classes,
                         shape_.stride,
                         builder.options().label_smoothing,
                         builder.options().loss_scale * builder.spec(index_).loss_weight,
                         builder.held().head};
    const int logits = builder.read(logits_);
    const int rows = builder.new_buffer(static_cast<int64_t>(shape_.rows) * kStepMetrics * kFloat);
    // The metrics are those of the last head. What is not finite in another one shows in its
    // gradients.
    const bool last = index_ + 1 == static_cast<int>(builder.nodes().size());
    const int unused = last ? -1 : builder.new_buffer(kStepMetrics * kFloat);
    const int64_t number = bytes_of(builder.held().head);
    dlogits_ = builder.new_buffer(logit_count() * number);
    // The kernel reads the logits three times: for their maximum, their sum and the gradient.
    builder.append("loss", logit_count() * (number + 3 * kFloat),
                   [loss, logits, rows, last, unused, dlogits = dlogits_, ops = builder.ops(),
                    metrics = builder.layout().metrics()](const DeviceRun& run) {
                     ops->loss(loss, run.at<float>(logits), run.rows, run.at(dlogits),
                               run.at<float>(rows),
                               last ? run.gradients + metrics : run.at<float>(unused));
                   });
  }

  int index_;
  LinearShape shape_;
  int64_t weight_ = 0, bias_ = -1;  // offsets
  int logits_ = -1, dlogits_ = -1;  // buffers
};

}  // namespace

std::unique_ptr<DeviceSteps> make_device_head(int index) {
  return std::make_unique<DeviceHeadSteps>(index);
}

}  // namespace stoker
