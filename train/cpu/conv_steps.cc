#include "train/cpu/plan_builder.h"

namespace stoker {
namespace {

using dnnl::memory;
using onednn::Desc;
using onednn::Dims;

// Winograd's F(4x4, 3x3) needs four times fewer multiplications, but more transforms. It is 1.2
// (7x7 pixels) to 2.3 times (28x28 and more) as fast if the output fills its tiles of 4x4 and the
// channels fill its matrices, and slower otherwise. Its results differ from direct convolution by
// about 1e-6 of a tensor's norm.
bool winograd_pays(const NetNode& node, int in_channels, const NodeShape& out) {
  constexpr int kTile = 4, kFewestChannels = 24;
  const auto tiled = [](int size) { return (size + kTile - 1) / kTile * kTile; };
  return node.kernel == 3 && node.stride == 1 && in_channels >= kFewestChannels &&
         node.out_channels >= kFewestChannels &&
         5 * out.height * out.width >= 3 * tiled(out.height) * tiled(out.width);
}

// Makes a Winograd primitive if it is wanted and oneDNN has it, else a direct one.
template <typename Make>
auto make_either(bool winograd, const Make& make) {
  if (winograd) {
    const auto made =
        onednn::if_implemented([&] { return make(dnnl::algorithm::convolution_winograd); });
    if (made) return *made;
  }
  return make(dnnl::algorithm::convolution_direct);
}

// The layouts of activations are fixed; oneDNN chooses those of the weights. With `any` for
// activations the three-channel first convolution would fall back to a reference kernel.
class ConvSteps final : public CpuSteps {
 public:
  explicit ConvSteps(int index) : index_(index) {}

  void build_forward(CpuPlanBuilder& builder) override {
    const NetNode& spec = builder.spec(index_);
    const FusedNode& node = builder.node(index_);
    const int in_channels = builder.node(node.input).shape.channels;
    const Dims weight_dims{spec.out_channels, in_channels, spec.kernel, spec.kernel};
    canonical_ = Desc(weight_dims, memory::data_type::f32, memory::format_tag::oihw);
    any_weights_ = Desc(weight_dims, builder.activation_type(), memory::format_tag::any);
    any_gradient_ =
        Desc(weight_dims, data_type(builder.held().convolution_gradients), memory::format_tag::any);
    if (spec.bias) {
      bias_ = Desc({spec.out_channels}, memory::data_type::f32, memory::format_tag::x);
    }
    strides_ = {spec.stride, spec.stride};
    padding_ = {spec.padding, spec.padding};
    winograd_ = builder.activation_layout() == ActivationLayout::blocked &&
                winograd_pays(spec, in_channels, node.shape);
    forward_ = make_either(winograd_, [&](dnnl::algorithm algorithm) {
      return onednn::make_forward<dnnl::convolution_forward>(
          builder.engine(), onednn::caller_scratchpad(), dnnl::prop_kind::forward_training,
          algorithm, builder.activation(node.input), any_weights_, bias_,
          builder.activation(index_), strides_, padding_, padding_);
    });
    layout_.node = node.node;
    layout_.canonical = layout_.master = canonical_;
    layout_.forward = forward_.weights_desc();
    if (!builder.options().training) builder.add_conv_layout(layout_);

    onednn::Args args{{DNNL_ARG_SRC, builder.value_view(node.input)},
                      {DNNL_ARG_WEIGHTS, builder.forward_weights(layout_.forward, index_)},
                      {DNNL_ARG_DST, builder.new_value(index_)}};
    if (spec.bias) {
      args[DNNL_ARG_BIAS] = builder.parameter(bias_, index_, ParameterKind::conv_bias);
    }
    builder.execute<dnnl::convolution_forward>("conv", forward_, std::move(args));
  }

  void build_backward(CpuPlanBuilder& builder) override {
    const int dy = builder.take_gradient(index_, 1)[0];
    builder.begin(index_, StepUse::parameters);
    build_backward_weights(builder, dy);
    builder.begin(index_, StepUse::inputs);
    if (builder.wants_gradient(builder.node(index_).input)) build_backward_data(builder, dy);
    builder.add_conv_layout(layout_);
    builder.release(dy);
  }

 private:
  void build_backward_weights(CpuPlanBuilder& builder, int dy) {
    const FusedNode& node = builder.node(index_);
    const auto desc = make_either(winograd_, [&](dnnl::algorithm algorithm) {
      return onednn::make_backward<dnnl::convolution_backward_weights>(
          builder.engine(), forward_, algorithm, builder.activation(node.input), any_gradient_,
          bias_, builder.activation(index_), strides_, padding_, padding_);
    });
    const Desc produced = desc.diff_weights_desc();
    const bool dense = produced.get_size() == canonical_.get_size();
    if (dense) layout_.master = produced;

    const memory target =
        builder.parameter_gradient(layout_.master, index_, ParameterKind::conv_weight);
    const int padded = dense ? -1 : builder.new_buffer(static_cast<int64_t>(produced.get_size()));
    onednn::Args args{{DNNL_ARG_SRC, builder.value_view(node.input)},
                      {DNNL_ARG_DIFF_DST, builder.gradient_view(index_, builder.read(dy))},
                      {DNNL_ARG_DIFF_WEIGHTS, dense ? target : builder.view(produced, padded)}};
    if (bias_.get_size() > 0) {
      args[DNNL_ARG_DIFF_BIAS] =
          builder.parameter_gradient(bias_, index_, ParameterKind::conv_bias);
    }
    builder.execute<dnnl::convolution_backward_weights>("conv_weights", desc, std::move(args));
    if (!dense) builder.copy(builder.read_view(produced, padded), target);
  }

  void build_backward_data(CpuPlanBuilder& builder, int dy) {
    const FusedNode& node = builder.node(index_);
    const auto desc = make_either(winograd_, [&](dnnl::algorithm algorithm) {
      return onednn::make_backward<dnnl::convolution_backward_data>(
          builder.engine(), forward_, algorithm, builder.activation(node.input), any_weights_,
          builder.activation(index_), strides_, padding_, padding_);
    });
    layout_.backward = desc.weights_desc();
    const int dx = builder.new_gradient(node.input);
    builder.execute<dnnl::convolution_backward_data>(
        "conv_data", desc,
        {{DNNL_ARG_WEIGHTS, builder.backward_weights(layout_.backward, index_)},
         {DNNL_ARG_DIFF_DST, builder.gradient_view(index_, builder.read(dy))},
         {DNNL_ARG_DIFF_SRC, builder.gradient_view(node.input, dx)}});
  }

  const int index_;
  bool winograd_ = false;
  Desc canonical_, any_weights_, any_gradient_, bias_;
  Dims strides_, padding_;
  dnnl::convolution_forward::primitive_desc forward_;
  ConvLayout layout_;
};

}  // namespace

std::unique_ptr<CpuSteps> make_cpu_conv(int index) { return std::make_unique<ConvSteps>(index); }

}  // namespace stoker
