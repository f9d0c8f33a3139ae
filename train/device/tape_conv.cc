#include "train/device/tape_builder.h"

namespace stoker {
namespace {

class ConvOp final : public DeviceTapeOp {
 public:
  explicit ConvOp(int index) : index_(index) {}

  void build_forward(DeviceTapeBuilder& tape) override {
    describe(tape);
    if (tape.ops() != nullptr) {
      conv_ = tape.ops()->make_conv(shape_, tape.options().training);
    }
    const bool for_norm = tape.options().training && bias_ < 0 && tape.is_for_norm(index_);
    DeviceSummingConv* summing = for_norm && conv_ != nullptr ? conv_->summing() : nullptr;
    if (summing != nullptr) return build_summing(tape, *summing);
    const int x = tape.value(tape.node(index_).input);
    const int workspace = tape.workspace(workspace_bytes(tape, ConvPass::forward));
    const int y = tape.define_value(index_);
    const int64_t number = tape.number_bytes();
    tape.append("conv", bytes(tape),
                [conv = conv_, x, y, workspace, weight = weight_ * number](const DeviceRun& run) {
                  conv->run(ConvPass::forward, run.at(x), run.weights + weight, run.at(y),
                            run.at(workspace));
                });
    if (bias_ < 0) return;
    tape.append("conv_bias", 2 * tape.bytes(index_),
                [ops = tape.ops(), y = tape.use(y), pixels = tape.pixels(index_), s = shape_,
                 bias = bias_](const DeviceRun& run) {
                  ops->add_bias(pixels, s.out_channels, s.type, run.parameters + bias, run.at(y));
                });
  }

  void build_backward(DeviceTapeBuilder& tape) override {
    const int input = tape.node(index_).input;
    tape.begin(index_, DeviceStepUse::both);
    const int dy = tape.take_gradient(index_, 1)[0];
    tape.begin(index_, DeviceStepUse::parameter, weight_tensor_);
    build_backward_weights(tape, dy);
    if (bias_ >= 0) {
      tape.begin(index_, DeviceStepUse::parameter, bias_tensor_);
      const int scratch = tape.new_buffer(channel_scratch_bytes(shape_.out_channels));
      tape.append("conv_bias_back", tape.bytes(index_),
                  [ops = tape.ops(), dy = tape.use(dy), scratch, pixels = tape.pixels(index_),
                   s = shape_, bias = bias_](const DeviceRun& run) {
                    ops->sum_pixels(pixels, s.out_channels, s.type, run.at(dy), run.part + bias,
                                    run.at(scratch));
                  });
    }
    tape.begin(index_, DeviceStepUse::inputs);
    if (tape.wants_gradient(input)) {
      const int workspace = tape.workspace(workspace_bytes(tape, ConvPass::backward_data));
      const int dx = tape.new_gradient(input);
      tape.append("conv_data", bytes(tape),
                  [conv = conv_, dy = tape.use(dy), dx, workspace,
                   weight = weight_ * tape.number_bytes()](const DeviceRun& run) {
                    conv->run(ConvPass::backward_data, run.at(dy), run.weights + weight, run.at(dx),
                              run.at(workspace));
                  });
    }
    tape.release(dy);
  }

 private:
  void describe(DeviceTapeBuilder& tape) {
    const DeviceNode& node = tape.node(index_);
    const NodeShape& in = tape.node(node.input).shape;
    const NetNode& spec = tape.spec(index_);
    shape_ = {
        tape.options().rows,     in.channels,      in.height,   in.width,    node.shape.channels,
        node.shape.height,       node.shape.width, spec.kernel, spec.stride, spec.padding,
        tape.options().precision};
    const DeviceLayout& layout = tape.layout();
    weight_tensor_ = layout.tensor_of(node.node, ParameterKind::conv_weight);
    weight_ = layout.tensors()[weight_tensor_].offset;
    if (!spec.bias) return;
    bias_tensor_ = layout.tensor_of(node.node, ParameterKind::conv_bias);
    bias_ = layout.tensors()[bias_tensor_].offset;
  }

  int64_t workspace_bytes(DeviceTapeBuilder& tape, ConvPass pass) const {
    if (conv_ == nullptr) return tape.options().assumed_workspace;
    tape.note(conv_->implementation(pass));
    return conv_->workspace_bytes(pass);
  }

  // Input, output and weights, whichever of them is the result.
  int64_t bytes(const DeviceTapeBuilder& tape) const {
    const int64_t weights = tape.layout().tensors()[weight_tensor_].count * tape.number_bytes();
    return tape.bytes(tape.node(index_).input) + weights + tape.bytes(index_);
  }

  // For a batch norm that is thus spared a pass. The convolution that the step holds owns
  // `summing`.
  void build_summing(DeviceTapeBuilder& tape, DeviceSummingConv& summing) {
    const int x = tape.value(tape.node(index_).input);
    tape.note(summing.implementation());
    const int workspace = tape.workspace(summing.workspace_bytes());
    const int y = tape.define_value(index_);
    const int sums = tape.new_buffer(2 * int64_t{sizeof(float)} * shape_.out_channels);
    tape.define_sums(index_, sums);
    tape.append("conv", bytes(tape),
                [owner = conv_, &summing, x, y, sums, workspace,
                 weight = weight_ * tape.number_bytes()](const DeviceRun& run) {
                  summing.run(run.at(x), run.weights + weight, run.at(y), run.at<float>(sums),
                              run.at(workspace));
                });
  }

  void build_backward_weights(DeviceTapeBuilder& tape, int dy) {
    const int x = tape.value(tape.node(index_).input);
    const int workspace = tape.workspace(workspace_bytes(tape, ConvPass::backward_weights));
    const bool narrow = tape.options().precision == Precision::bf16;
    tape.append("conv_weights", bytes(tape),
                [conv = conv_, x, dy = tape.use(dy), workspace, narrow,
                 at = weight_](const DeviceRun& run) {
                  void* out = narrow ? static_cast<void*>(run.narrow_gradients + at * 2)
                                     : static_cast<void*>(run.part + at);
                  conv->run(ConvPass::backward_weights, run.at(x), run.at(dy), out,
                            run.at(workspace));
                });
  }

  const int index_;
  ConvShape shape_;
  std::shared_ptr<DeviceConv> conv_;
  int64_t weight_ = 0, bias_ = -1;  // offsets
  int weight_tensor_ = -1, bias_tensor_ = -1;
};

}  // namespace

std::unique_ptr<DeviceTapeOp> make_device_conv(int index) {
  return std::make_unique<ConvOp>(index);
}

}  // namespace stoker
