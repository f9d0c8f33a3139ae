#include "train/device/plan_builder.h"
#include "train/device/program.h"

namespace stoker {
namespace {

class ConvSteps final : public DeviceSteps {
 public:
  explicit ConvSteps(int index) : index_(index) {}

  void build_forward(DevicePlanBuilder& builder) override {
    describe(builder);
    if (builder.ops() != nullptr) {
      conv_ = builder.ops()->make_conv(shape_, builder.options().training);
    }
    const bool for_norm = builder.options().training && bias_ < 0 && builder.is_for_norm(index_);
    DeviceSummingConv* summing = for_norm && conv_ != nullptr ? conv_->summing() : nullptr;
    if (summing != nullptr) return build_summing(builder, *summing);
    const int x = builder.value(builder.node(index_).input);
    const int workspace = builder.workspace(workspace_bytes(builder, ConvPass::forward));
    const int y = builder.define_value(index_);
    const int64_t number = builder.number_bytes();
    builder.append(
        "conv", bytes(builder),
        [conv = conv_, x, y, workspace, weight = weight_ * number](const DeviceRun& run) {
          conv->run(ConvPass::forward, run.at(x), run.weights + weight, run.at(y),
                    run.at(workspace));
        });
    if (bias_ >= 0 || builder.node(index_).activation != Activation::none) {
      build_bias(builder, builder.write(builder.read(y)));
    }
  }

  void build_backward(DevicePlanBuilder& builder) override {
    const int input = builder.node(index_).input;
    const int incoming = builder.take_gradient(index_, 1)[0];
    const int dy = builder.before_activation(index_, incoming);
    builder.begin(index_, StepUse::parameters, weight_tensor_);
    build_backward_weights(builder, dy);
    if (bias_ >= 0) {
      builder.begin(index_, StepUse::parameters, bias_tensor_);
      const int scratch = builder.new_buffer(channel_scratch_bytes(shape_.out_channels));
      builder.append(
          "conv_bias_back", builder.value_bytes(index_),
          [ops = builder.ops(), dy = builder.read(dy), scratch, pixels = builder.pixels(index_),
           s = shape_, bias = bias_](const DeviceRun& run) {
            ops->sum_pixels(pixels, s.out_channels, s.type, run.at(dy), run.gradients + bias,
                            run.at(scratch));
          });
    }
    builder.begin(index_, StepUse::inputs);
    if (builder.wants_gradient(input)) {
      const int workspace = builder.workspace(workspace_bytes(builder, ConvPass::backward_data));
      const int dx = builder.new_gradient(input);
      builder.append("conv_data", bytes(builder),
                     [conv = conv_, dy = builder.read(dy), dx, workspace,
                      weight = weight_ * builder.number_bytes()](const DeviceRun& run) {
                       conv->run(ConvPass::backward_data, run.at(dy), run.weights + weight,
                                 run.at(dx), run.at(workspace));
                     });
    }
    builder.release(incoming);
  }

 private:
  void describe(DevicePlanBuilder& builder) {
    const FusedNode& node = builder.node(index_);
    shape_ = conv_shape(builder.net(), builder.nodes(), index_, builder.options().rows,
                        builder.held().activations);
    const GradientLayout& layout = builder.layout();
    weight_tensor_ = layout.tensor_of(node.node, ParameterKind::conv_weight);
    weight_ = layout.tensors()[weight_tensor_].offset;
    if (!builder.spec(index_).bias) return;
    bias_tensor_ = layout.tensor_of(node.node, ParameterKind::conv_bias);
    bias_ = layout.tensors()[bias_tensor_].offset;
  }

  int64_t workspace_bytes(DevicePlanBuilder& builder, ConvPass pass) const {
    if (conv_ == nullptr) return builder.assumed_workspace();
    builder.note_implementation(conv_->implementation(pass));
    return conv_->workspace_bytes(pass);
  }

  // Returns the bytes of input, output and weights, which every pass reads or writes once.
  int64_t bytes(const DevicePlanBuilder& builder) const {
    const int64_t weights =
        builder.layout().tensors()[weight_tensor_].count * builder.number_bytes();
    return builder.value_bytes(builder.node(index_).input) + weights + builder.value_bytes(index_);
  }

  // Appends the bias and the activation, in place.
  void build_bias(DevicePlanBuilder& builder, int y) const {
    builder.append("conv_bias", 2 * builder.value_bytes(index_),
                   [ops = builder.ops(), y, pixels = builder.pixels(index_), s = shape_,
                    kind = builder.node(index_).activation, bias = bias_](const DeviceRun& run) {
                     if (bias < 0) {
                       ops->activate(kind, pixels * s.out_channels, s.type, run.at(y), run.at(y));
                     } else {
                       ops->add_bias(pixels, s.out_channels, s.type, run.parameters + bias, kind,
                                     run.at(y));
                     }
                   });
  }

  // Appends a convolution that also sums its output, which saves the following batch norm a pass.
  // conv_ owns `summing`; the step holds conv_.
  void build_summing(DevicePlanBuilder& builder, DeviceSummingConv& summing) {
    const int x = builder.value(builder.node(index_).input);
    builder.note_implementation(summing.implementation());
    const int workspace = builder.workspace(summing.workspace_bytes());
    const int y = builder.define_value(index_);
    const int sums = builder.new_buffer(2 * int64_t{sizeof(float)} * shape_.out_channels);
    builder.define_sums(index_, sums);
    builder.append("conv", bytes(builder),
                   [owner = conv_, &summing, x, y, sums, workspace,
                    weight = weight_ * builder.number_bytes()](const DeviceRun& run) {
                     summing.run(run.at(x), run.weights + weight, run.at(y), run.at<float>(sums),
                                 run.at(workspace));
                   });
  }

  void build_backward_weights(DevicePlanBuilder& builder, int dy) {
    const int x = builder.value(builder.node(index_).input);
    const int workspace = builder.workspace(workspace_bytes(builder, ConvPass::backward_weights));
    const bool bf16 = builder.held().convolution_gradients == Precision::bf16;
    builder.append("conv_weights", bytes(builder),
                   [conv = conv_, x, dy = builder.read(dy), workspace, bf16,
                    at = weight_](const DeviceRun& run) {
                     void* out = bf16 ? static_cast<void*>(run.bf16_gradients + at * 2)
                                      : static_cast<void*>(run.gradients + at);
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

std::unique_ptr<DeviceSteps> make_device_conv(int index) {
  return std::make_unique<ConvSteps>(index);
}

}  // namespace stoker
