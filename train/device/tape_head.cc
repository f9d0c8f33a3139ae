#include "train/device/tape_builder.h"

namespace stoker {
namespace {

// The linear layer and the loss. Logits and loss are fp32 whatever the activations are.
class HeadOp final : public DeviceTapeOp {
 public:
  explicit HeadOp(int index) : index_(index) {}

  void build_forward(DeviceTapeBuilder& tape) override {
    describe(tape);
    const int x = tape.value(tape.node(index_).input);
    const int workspace = tape.workspace(kLinearWorkspaceBytes);
    const bool training = tape.options().training;
    if (training) logits_ = tape.new_buffer(logit_count() * kFloat);
    tape.append("linear", bytes(tape),
                [*this, x, workspace, ops = tape.ops(), training,
                 number = tape.number_bytes()](const DeviceRun& run) {
                  ops->linear(shape_, run.at(x), run.weights + weight_ * number,
                              bias_ < 0 ? nullptr : run.parameters + bias_,
                              training ? run.at<float>(logits_) : run.logits, run.at(workspace));
                });
    if (training) build_loss(tape);
  }

  void build_backward(DeviceTapeBuilder& tape) override {
    const int input = tape.node(index_).input;
    const int x = tape.value(input), dlogits = tape.use(dlogits_);
    const int workspace = tape.workspace(kLinearWorkspaceBytes);
    const int dx = tape.wants_gradient(input) ? tape.new_gradient(input) : -1;
    tape.append("linear_back", back_bytes(tape, dx >= 0),
                [*this, x, dlogits, dx, workspace, ops = tape.ops(),
                 number = tape.number_bytes()](const DeviceRun& run) {
                  ops->linear_backward(shape_, run.at(x), run.weights + weight_ * number,
                                       run.at(dlogits), run.part + weight_,
                                       bias_ < 0 ? nullptr : run.part + bias_, run.at(dx),
                                       run.at(workspace));
                });
  }

 private:
  static constexpr int64_t kFloat = sizeof(float);

  int64_t weight_count() const { return static_cast<int64_t>(shape_.classes) * shape_.features; }
  int64_t bytes(const DeviceTapeBuilder& tape) const {
    return tape.bytes(tape.node(index_).input) + weight_count() * tape.number_bytes() +
           logit_count() * kFloat;
  }
  // The weights' gradient reads x and the logits' and writes fp32; the input's reads the logits'
  // gradient again, and the weights.
  int64_t back_bytes(const DeviceTapeBuilder& tape, bool data) const {
    const int64_t input = tape.bytes(tape.node(index_).input);
    const int64_t logits = logit_count() * tape.number_bytes();
    const int64_t of_data = data ? logits + weight_count() * tape.number_bytes() + input : 0;
    return input + logits + weight_count() * kFloat + of_data;
  }
  int64_t logit_count() const { return static_cast<int64_t>(shape_.rows) * shape_.stride; }

  void describe(DeviceTapeBuilder& tape) {
    constexpr int kStep = 8;  // numbers that matrix units like rows to be multiples of
    const DeviceNode& node = tape.node(index_);
    const int classes = node.shape.channels;
    shape_ = {tape.options().rows,
              tape.node(node.input).shape.channels,
              classes,
              (classes + kStep - 1) / kStep * kStep,
              tape.spec(index_).scale,
              tape.options().precision};
    const DeviceLayout& layout = tape.layout();
    weight_ = layout.tensors()[layout.tensor_of(node.node, ParameterKind::linear_weight)].offset;
    const int bias = layout.tensor_of(node.node, ParameterKind::linear_bias);
    if (bias >= 0) bias_ = layout.tensors()[bias].offset;
  }

  void build_loss(DeviceTapeBuilder& tape) {
    const LossShape loss{shape_.rows,
                         shape_.classes,
                         shape_.stride,
                         tape.options().label_smoothing,
                         tape.options().loss_scale,
                         tape.options().precision};
    const int logits = tape.use(logits_);
    const int rows = tape.new_buffer(static_cast<int64_t>(shape_.rows) * kDeviceTotals * kFloat);
    const int64_t number = tape.number_bytes();
    dlogits_ = tape.new_buffer(logit_count() * number);
    // The kernel reads the logits three times: for their maximum, their sum, and the gradient.
    tape.append("loss", logit_count() * (number + 3 * kFloat),
                [loss, logits, rows, dlogits = dlogits_, ops = tape.ops(),
                 totals = tape.layout().totals()](const DeviceRun& run) {
                  ops->loss(loss, run.at<float>(logits), run.labels, run.row_weights, run.mix,
                            run.at(dlogits), run.at<float>(rows), run.part + totals);
                });
  }

  int index_;
  LinearShape shape_;
  int64_t weight_ = 0, bias_ = -1;  // offsets
  int logits_ = -1, dlogits_ = -1;  // buffers
};

}  // namespace

std::unique_ptr<DeviceTapeOp> make_device_head(int index) {
  return std::make_unique<HeadOp>(index);
}

}  // namespace stoker
