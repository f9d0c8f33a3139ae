#include "train/cpu/plan_builder.h"
#include "train/cpu/winograd.h"

namespace stoker {
namespace {

using dnnl::memory;
using onednn::Desc;
using onednn::Dims;

bool takes(const CpuPlanBuilder& builder, int index) {
  const NetNode& spec = builder.spec(index);
  const FusedNode& node = builder.node(index);
  const bool activated = node.activation != Activation::none && node.activation != Activation::relu;
  return node.kind == OpKind::conv && !spec.flat && !activated && spec.kernel == Size{3, 3} &&
         spec.stride == 1 && spec.padding.height == spec.padding.width &&
         spec.padding.height <= 2 && builder.node(node.input).kind != OpKind::input &&
         builder.in_blocks(node.input) == builder.in_blocks(index) &&
         builder.precision(node.input) == builder.precision(index);
}

class WinogradSteps final : public CpuSteps {
 public:
  WinogradSteps(int index, const WinogradShape& shape) : index_(index), shape_(shape) {
    const int64_t in = shape.in_channels, out = shape.out_channels;
    const Dims dims{out, in, 3, 3};
    constexpr auto kType = memory::data_type::f32;
    layout_.canonical = Desc(dims, kType, memory::format_tag::oihw);
    layout_.master = layout_.forward = layout_.backward =
        Desc(dims, kType, memory::format_tag::hwio);
    bias_ = Desc({out}, kType, memory::format_tag::x);
  }

  void build_forward(CpuPlanBuilder& builder) override {
    const FusedNode& node = builder.node(index_);
    layout_.node = node.node;
    if (!builder.options().training) builder.add_conv_layout(layout_);
    const memory input = builder.value_view(node.input);
    const memory weights = builder.forward_weights(layout_.forward, index_);
    const memory output = builder.new_value(index_);
    const memory scratch = new_scratch(builder, winograd_forward_scratch(shape_));
    memory bias;
    if (has_bias(builder)) bias = builder.parameter(bias_, index_, ParameterKind::conv_bias);
    const bool relu = node.activation == Activation::relu;
    builder.note_implementation("conv winograd 4x4");
    builder.append("conv", 0, [=, shape = shape_](const MicroBatchRun&) {
      winograd_forward(shape,
                       {input.get_data_handle(), floats(weights), floats_or_null(bias), relu,
                        output.get_data_handle()},
                       floats(scratch));
    });
  }

  void build_backward(CpuPlanBuilder& builder) override {
    const FusedNode& node = builder.node(index_);
    const int dy = builder.take_gradient(index_, 1)[0];
    const int before = builder.before_activation(index_, dy);
    builder.begin(index_, StepUse::parameters);
    build_backward_weights(builder, before);
    builder.begin(index_, StepUse::inputs);
    if (builder.wants_gradient(node.input)) build_backward_data(builder, before);
    builder.add_conv_layout(layout_);
    builder.release(dy);
  }

 private:
  bool has_bias(const CpuPlanBuilder& builder) const { return builder.spec(index_).bias; }

  static memory new_scratch(CpuPlanBuilder& builder, int64_t count) {
    return builder.new_view(Desc({count}, memory::data_type::f32, memory::format_tag::x));
  }

  void build_backward_weights(CpuPlanBuilder& builder, int dy) {
    const memory input = builder.value_view(builder.node(index_).input);
    const memory output_gradient = builder.gradient_view(index_, builder.read(dy));
    const memory gradient =
        builder.parameter_gradient(layout_.master, index_, ParameterKind::conv_weight);
    const memory scratch = new_scratch(builder, winograd_backward_weights_scratch(shape_));
    memory bias;
    if (has_bias(builder)) {
      bias = builder.parameter_gradient(bias_, index_, ParameterKind::conv_bias);
    }
    builder.append("conv_weights", 0, [=, shape = shape_](const MicroBatchRun&) {
      winograd_backward_weights(shape,
                                {input.get_data_handle(), output_gradient.get_data_handle(),
                                 floats(gradient), floats_or_null(bias)},
                                floats(scratch));
    });
  }

  void build_backward_data(CpuPlanBuilder& builder, int dy) {
    const int node = builder.node(index_).input;
    const memory weights = builder.backward_weights(layout_.backward, index_);
    const memory output_gradient = builder.gradient_view(index_, builder.read(dy));
    const memory input_gradient = builder.gradient_view(node, builder.new_gradient(node));
    const memory scratch = new_scratch(builder, winograd_backward_data_scratch(shape_));
    builder.append("conv_data", 0, [=, shape = shape_](const MicroBatchRun&) {
      winograd_backward_data(
          shape,
          {output_gradient.get_data_handle(), floats(weights), input_gradient.get_data_handle()},
          floats(scratch));
    });
  }

  const int index_;
  const WinogradShape shape_;
  Desc bias_;
  ConvLayout layout_;
};

}  // namespace

std::unique_ptr<CpuSteps> make_winograd_steps(const CpuPlanBuilder& builder, int index) {
  if (!takes(builder, index)) return nullptr;
  const NetNode& spec = builder.spec(index);
  const NodeShape& in = builder.node(builder.node(index).input).shape;
  const WinogradShape shape{
      .rows = builder.options().rows,
      .in_channels = in.channels,
      .out_channels = spec.out_channels,
      .height = in.height,
      .width = in.width,
      .padding = spec.padding.height,
      .layout = builder.in_blocks(index) ? WinogradLayout::blocked : WinogradLayout::nhwc,
      .precision = builder.precision(index)};
  if (!winograd_pays(shape)) return nullptr;
  return std::make_unique<WinogradSteps>(index, shape);
}

}  // namespace stoker
