#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <type_traits>

#include "train/cpu/bf16_gradient.h"
#include "train/cpu/plan_builder.h"

namespace stoker {
namespace {

using dnnl::memory;
using onednn::Desc;
using onednn::Dims;

dnnl::primitive_attr with_activation(Activation activation) {
  dnnl::primitive_attr attr = onednn::caller_scratchpad();
  if (activation == Activation::none) return attr;
  attr.set_post_ops(onednn::eltwise_post_op(forward_algorithm(activation)));
  return attr;
}

// The descriptors of one layer. Layouts of activations are fixed; oneDNN chooses those of the
// weights. With `any` for activations the three-channel first convolution would fall back to a
// reference kernel.
struct LayerDescs {
  LayerDescs(CpuPlanBuilder& builder, int index) {
    const NetNode& spec = builder.spec(index);
    const FusedNode& node = builder.node(index);
    const int in_channels = builder.node(node.input).shape.channels;
    weights = {spec.out_channels, in_channels, spec.kernel.height, spec.kernel.width};
    const Precision precision = builder.precision(index);
    in = builder.activation(node.input, precision);
    out = builder.activation(index);
    // The blocks of a product's input must be full: it reads a row as one vector.
    const bool padded = spec.flat && builder.node(node.input).kind != OpKind::input &&
                        builder.in_blocks(node.input) && in_channels % kBlockChannels != 0;
    if (padded) {
      in = Desc({builder.options().rows, in_channels, spec.kernel.height, spec.kernel.width},
                data_type(precision), memory::format_tag::nhwc);
    }
    in_blocks = builder.in_blocks(node.input) && !padded;
    casts = padded || builder.precision(node.input) != precision;
    canonical = Desc(weights, memory::data_type::f32, memory::format_tag::oihw);
    any_weights = Desc(weights, data_type(precision), memory::format_tag::any);
    any_gradient =
        Desc(weights, data_type(builder.held().convolution_gradients), memory::format_tag::any);
    if (spec.bias) bias = Desc({spec.out_channels}, memory::data_type::f32, memory::format_tag::x);
  }
  bool casts;  // the input has another precision or layout
  bool in_blocks;
  Dims weights;
  Desc in, out, canonical, any_weights, any_gradient, bias;
};

class Convolution {
 public:
  using Forward = dnnl::convolution_forward;
  using BackwardData = dnnl::convolution_backward_data;
  using BackwardWeights = dnnl::convolution_backward_weights;

  Convolution(CpuPlanBuilder& builder, int index)
      : descs(builder, index),
        engine_(builder.engine()),
        name_(builder.net().name + "', '" + builder.spec(index).name),
        out_channels_(builder.spec(index).out_channels) {
    const NetNode& spec = builder.spec(index);
    strides_ = {spec.stride, spec.stride};
    padding_ = {spec.padding.height, spec.padding.width};
  }

  Forward::primitive_desc forward(dnnl::prop_kind kind, const dnnl::primitive_attr& attr) const {
    return onednn::make_forward<Forward>(engine_, attr, kind, kAlgorithm, descs.in,
                                         descs.any_weights, descs.bias, descs.out, strides_,
                                         padding_, padding_);
  }
  BackwardWeights::primitive_desc backward_weights(const Forward::primitive_desc& hint) const {
    return onednn::make_backward<BackwardWeights>(engine_, hint, kAlgorithm, descs.in,
                                                  descs.any_gradient, descs.bias, descs.out,
                                                  strides_, padding_, padding_);
  }
  BackwardData::primitive_desc backward_data(const Forward::primitive_desc& hint) const {
    auto desc =
        onednn::make_backward<BackwardData>(engine_, hint, kAlgorithm, descs.in, descs.any_weights,
                                            descs.out, strides_, padding_, padding_);
    require_right(desc.impl_info_str());
    return desc;
  }

  // Returns the shape of the weights' gradient, if bf16_gradient.h computes it.
  std::optional<Bf16GradientShape> own_gradient(const CpuPlanBuilder& builder, int index) const {
    const NetNode& spec = builder.spec(index);
    const int input = builder.node(index).input;
    if (builder.precision(index) != Precision::bf16 || descs.casts || spec.bias) return {};
    if (!onednn::cpu_has(dnnl::cpu_isa::avx512_core_bf16)) return {};
    if (onednn::cpu_has(dnnl::cpu_isa::avx512_core_amx)) return {};  // oneDNN uses it
    const NodeShape &in = builder.node(input).shape, &out = builder.node(index).shape;
    const Bf16GradientShape shape{.rows = builder.options().rows,
                                  .in_channels = in.channels,
                                  .out_channels = out.channels,
                                  .in_height = in.height,
                                  .in_width = in.width,
                                  .out_height = out.height,
                                  .out_width = out.width,
                                  .kernel_height = spec.kernel.height,
                                  .kernel_width = spec.kernel.width,
                                  .stride = spec.stride,
                                  .padding_height = spec.padding.height,
                                  .padding_width = spec.padding.width};
    return has_bf16_gradient(shape) ? std::optional(shape) : std::nullopt;
  }

  const LayerDescs descs;

 private:
  static constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;

  // oneDNN 2.6's kernel of this name reads wrong numbers if the output has an odd number of
  // channels and, say, 90 pixels. It has no other kernel for this case.
  void require_right(std::string_view backward_data_kernel) const {
    if (out_channels_ % 2 == 0 || !backward_data_kernel.starts_with("jit_bf16_1x1")) return;
    throw std::invalid_argument("CPU engine for '" + name_ + "': a 1x1 convolution with " +
                                std::to_string(out_channels_) +
                                " output channels; this oneDNN's bf16 gradients are wrong if that "
                                "number is odd; use fp32 or another width");
  }

  const dnnl::engine engine_;
  const std::string name_;  // for messages
  const int out_channels_;
  Dims strides_, padding_;
};

// A fully connected layer: a matrix product, whose kernel covers the whole input.
class InnerProduct {
 public:
  using Forward = dnnl::inner_product_forward;
  using BackwardData = dnnl::inner_product_backward_data;

  InnerProduct(CpuPlanBuilder& builder, int index)
      : descs(builder, index),
        engine_(builder.engine()),
        weights_(descs.weights, memory::data_type::f32, layout(builder, index, descs.in_blocks)),
        out_({builder.options().rows, builder.node(index).shape.channels}, memory::data_type::f32,
             memory::format_tag::ab) {}

  Forward::primitive_desc forward(dnnl::prop_kind kind, const dnnl::primitive_attr& attr) const {
    return onednn::make_forward<Forward>(engine_, attr, kind, descs.in, weights_, descs.bias, out_);
  }
  BackwardData::primitive_desc backward_data(const Forward::primitive_desc& hint) const {
    return onednn::make_backward<BackwardData>(engine_, hint, descs.in, weights_, out_);
  }
  const Desc& weights() const { return weights_; }

  const LayerDescs descs;

 private:
  // All passes read the masters, in the order of the input, so that there are no copies of weights,
  // which may be a hundred million.
  static memory::format_tag layout(const CpuPlanBuilder& builder, int index, bool in_blocks) {
    if (!in_blocks) return memory::format_tag::acdb;
    const bool planes = builder.node(builder.node(index).input).kind == OpKind::input;
    return planes ? memory::format_tag::abcd : memory::format_tag::aBcd16b;
  }

  const dnnl::engine engine_;
  const Desc weights_;
  const Desc out_;
};

// The gradient of a fully connected layer's weights, (outputs, inputs).
struct ProductGradient {
  int64_t rows, inputs, outputs;
  int64_t block;  // outputs

  // Computes that of `count` outputs from `first` on.
  void compute(const float* x, const float* dy, int64_t first, int64_t count, float* to) const {
    dnnl::sgemm('T', 'N', count, inputs, rows, 1.f, dy + first, outputs, x, inputs, 0.f, to,
                inputs);
  }
  void add_in_blocks(const float* x, const float* dy, float* scratch, float* sum) const {
    for (int64_t first = 0; first < outputs; first += block) {
      const int64_t count = std::min(block, outputs - first);
      compute(x, dy, first, count, scratch);
      add_to(sum + first * inputs, scratch, count * inputs);
    }
  }
  void compute_bias(const float* dy, float* bias) const {
    std::fill_n(bias, outputs, 0.0f);
    for (int64_t row = 0; row < rows; ++row) add_to(bias, dy + row * outputs, outputs);
  }
};

// The steps of a layer with weights; `Layer` makes the primitives.
template <typename Layer>
class WeightSteps final : public CpuSteps {
 public:
  explicit WeightSteps(int index) : index_(index) {}

  void build_forward(CpuPlanBuilder& builder) override {
    layer_.emplace(builder, index_);
    const FusedNode& node = builder.node(index_);
    const LayerDescs& descs = layer_->descs;
    if (descs.casts) {
      cast_ = builder.new_buffer(static_cast<int64_t>(descs.in.get_size()));
      builder.copy(builder.value_view(node.input), builder.view(descs.in, cast_));
    }
    // oneDNN fuses activations for inference only; the backward pass takes a plain one as its hint.
    const auto desc =
        layer_->forward(dnnl::prop_kind::forward_inference, with_activation(node.activation));
    if (builder.options().training) {
      hint_ = layer_->forward(dnnl::prop_kind::forward_training, onednn::caller_scratchpad());
    }
    layout_.node = node.node;
    layout_.canonical = layout_.master = descs.canonical;
    layout_.forward = desc.weights_desc();
    if (!builder.options().training) builder.add_conv_layout(layout_);

    onednn::Args args{{DNNL_ARG_SRC, input(builder)},
                      {DNNL_ARG_WEIGHTS, builder.forward_weights(layout_.forward, index_)},
                      {DNNL_ARG_DST, builder.new_value(index_, desc.dst_desc())}};
    if (has_bias()) {
      args[DNNL_ARG_BIAS] = builder.parameter(descs.bias, index_, ParameterKind::conv_bias);
    }
    builder.execute<typename Layer::Forward>("conv", desc, std::move(args));
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
  bool has_bias() const { return layer_->descs.bias.get_size() > 0; }

  // In the layer's precision.
  memory input(CpuPlanBuilder& builder) const {
    return cast_ < 0 ? builder.value_view(builder.node(index_).input)
                     : builder.read_view(layer_->descs.in, cast_);
  }

  void build_backward_weights(CpuPlanBuilder& builder, int dy) {
    if constexpr (std::is_same_v<Layer, InnerProduct>) {
      build_product_gradient(builder, dy);
    } else {
      build_conv_gradient(builder, dy);
    }
  }

  // The weights may be a hundred million, so a micro-batch that adds to a sum computes them in
  // blocks.
  void build_product_gradient(CpuPlanBuilder& builder, int dy) {
    layout_.master = layer_->weights();
    const onednn::Dims& in = layer_->descs.weights;
    ProductGradient gradient{.rows = builder.options().rows,
                             .inputs = in[1] * in[2] * in[3],
                             .outputs = in[0],
                             .block = 1};
    gradient.block = std::clamp<int64_t>(kBlockFloats / gradient.inputs, 1, gradient.outputs);
    const int64_t offset =
        builder.layout().offset_of(builder.node(index_).node, ParameterKind::conv_weight);
    memory bias;
    if (has_bias()) {
      bias = builder.parameter_gradient(layer_->descs.bias, index_, ParameterKind::conv_bias);
    }
    builder.note_implementation("conv_weights by sgemm");
    const Desc block({gradient.block * gradient.inputs}, memory::data_type::f32,
                     memory::format_tag::x);
    builder.append(
        "conv_weights", 0,
        [=, x = input(builder), scratch = builder.new_view(block),
         dy = builder.gradient_view(index_, builder.read(dy))](const MicroBatchRun& r) {
          if (r.scratch == nullptr) {
            gradient.compute(floats(x), floats(dy), 0, gradient.outputs, r.gradients + offset);
          }
          if (bias) gradient.compute_bias(floats(dy), floats(bias));
          const GradientSum::Turn turn(r.sum, r.micro_batch);
          if (r.scratch == nullptr) return;
          gradient.add_in_blocks(floats(x), floats(dy), floats(scratch), r.gradients + offset);
        });
  }

  void build_conv_gradient(CpuPlanBuilder& builder, int dy) {
    const LayerDescs& descs = layer_->descs;
    if (const auto shape = layer_->own_gradient(builder, index_)) {
      layout_.master = Desc(descs.weights, memory::data_type::f32, memory::format_tag::OIhw16i16o);
      const Desc scratch({bf16_gradient_scratch(*shape)}, memory::data_type::f32,
                         memory::format_tag::x);
      builder.note_implementation("conv_weights bf16 pairs");
      builder.append(
          "conv_weights", 0,
          [shape = *shape, x = input(builder), dy = builder.gradient_view(index_, builder.read(dy)),
           to = builder.parameter_gradient(layout_.master, index_, ParameterKind::conv_weight),
           scratch = builder.new_view(scratch)](const MicroBatchRun&) {
            bf16_gradient(shape, static_cast<const uint16_t*>(x.get_data_handle()),
                          static_cast<const uint16_t*>(dy.get_data_handle()), floats(to),
                          floats(scratch));
          });
      return;
    }
    const auto desc = layer_->backward_weights(hint_);
    const Desc produced = desc.diff_weights_desc();
    const bool dense = produced.get_size() == descs.canonical.get_size();
    if (dense) layout_.master = produced;

    const memory target =
        builder.parameter_gradient(layout_.master, index_, ParameterKind::conv_weight);
    const int padded = dense ? -1 : builder.new_buffer(static_cast<int64_t>(produced.get_size()));
    onednn::Args args{{DNNL_ARG_SRC, input(builder)},
                      {DNNL_ARG_DIFF_DST, builder.view(desc.diff_dst_desc(), builder.read(dy))},
                      {DNNL_ARG_DIFF_WEIGHTS, dense ? target : builder.view(produced, padded)}};
    if (has_bias()) {
      args[DNNL_ARG_DIFF_BIAS] =
          builder.parameter_gradient(descs.bias, index_, ParameterKind::conv_bias);
    }
    builder.execute<typename Layer::BackwardWeights>("conv_weights", desc, std::move(args));
    if (!dense) builder.copy(builder.read_view(produced, padded), target);
  }

  void build_backward_data(CpuPlanBuilder& builder, int dy) {
    const LayerDescs& descs = layer_->descs;
    const int node = builder.node(index_).input;
    const auto desc = layer_->backward_data(hint_);
    layout_.backward = desc.weights_desc();
    const int dx = descs.casts ? builder.new_buffer(static_cast<int64_t>(descs.in.get_size()))
                               : builder.new_gradient(node);
    builder.execute<typename Layer::BackwardData>(
        "conv_data", desc,
        {{DNNL_ARG_WEIGHTS, builder.backward_weights(layout_.backward, index_)},
         {DNNL_ARG_DIFF_DST, builder.view(desc.diff_dst_desc(), builder.read(dy))},
         {DNNL_ARG_DIFF_SRC, builder.view(descs.in, dx)}});
    if (!descs.casts) return;
    builder.copy(builder.read_view(descs.in, dx),
                 builder.gradient_view(node, builder.new_gradient(node)));
  }

  static constexpr int64_t kBlockFloats = 1 << 17;  // they stay in a core's cache

  const int index_;
  std::optional<Layer> layer_;
  typename Layer::Forward::primitive_desc hint_;
  ConvLayout layout_;
  int cast_ = -1;  // buffer with the input, if that has another precision
};

}  // namespace

std::unique_ptr<CpuSteps> make_cpu_conv(const CpuPlanBuilder& builder, int index) {
  if (builder.spec(index).flat) return std::make_unique<WeightSteps<InnerProduct>>(index);
  auto winograd = make_winograd_steps(builder, index);
  if (winograd != nullptr) return winograd;
  return std::make_unique<WeightSteps<Convolution>>(index);
}

}  // namespace stoker
