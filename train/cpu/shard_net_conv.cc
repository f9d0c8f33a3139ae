#include "train/cpu/shard_net_builder.h"

namespace stoker {
namespace {

using dnnl::memory;
using onednn::Desc;
using onednn::Dims;

// Winograd's F(4x4, 3x3) multiplies four times less, and transforms more: 1.2 (7x7 pixels) to 2.3
// times as fast (28x28 and more) where the output fills its tiles of 4x4 and channels fill its
// matrices, slower below that. It differs from the direct way by about 1e-6 of a tensor's norm.
bool winograd_pays(const NetNode& node, int in_channels, const NodeShape& out) {
  constexpr int kTile = 4, kFewestChannels = 24;
  const auto tiled = [](int size) { return (size + kTile - 1) / kTile * kTile; };
  return node.kernel == 3 && node.stride == 1 && in_channels >= kFewestChannels &&
         node.out_channels >= kFewestChannels &&
         5 * out.height * out.width >= 3 * tiled(out.height) * tiled(out.width);
}

// Winograd where that is wanted and the library has it, else direct.
template <typename Make>
auto make_either(bool winograd, const Make& make) {
  if (winograd) {
    const auto made =
        onednn::if_implemented([&] { return make(dnnl::algorithm::convolution_winograd); });
    if (made) return *made;
  }
  return make(dnnl::algorithm::convolution_direct);
}

// Activations' layouts are given by name, weights are what the library likes. Activations by `any`
// would make the three-channel first convolution fall back to a reference kernel.
class ConvOp : public TapeOp {
 public:
  explicit ConvOp(int index) : index_(index) {}

  void build_forward(TapeBuilder& tape) override {
    const NetNode& node = tape.node(index_);
    const LoweredOp& op = tape.op(index_);
    const int in_channels = tape.op(op.input).shape.channels;
    const Dims weight_dims{node.out_channels, in_channels, node.kernel, node.kernel};
    canonical_ = Desc(weight_dims, memory::data_type::f32, memory::format_tag::oihw);
    any_weights_ = Desc(weight_dims, tape.activation_type(), memory::format_tag::any);
    any_gradient_ = Desc(weight_dims, memory::data_type::f32, memory::format_tag::any);
    if (node.bias) {
      bias_ = Desc({node.out_channels}, memory::data_type::f32, memory::format_tag::x);
    }
    strides_ = {node.stride, node.stride};
    padding_ = {node.padding, node.padding};
    winograd_ =
        tape.layout() == ActivationLayout::blocked && winograd_pays(node, in_channels, op.shape);
    forward_ = make_either(winograd_, [&](dnnl::algorithm algorithm) {
      return onednn::make_forward<dnnl::convolution_forward>(
          tape.engine(), onednn::caller_scratchpad(), dnnl::prop_kind::forward_training, algorithm,
          tape.activation(op.input), any_weights_, bias_, tape.activation(index_), strides_,
          padding_, padding_);
    });
    layout_.node = op.node;
    layout_.canonical = layout_.master = canonical_;
    layout_.forward = forward_.weights_desc();
    if (!tape.options().training) tape.add_conv_layout(layout_);

    onednn::Args args{{DNNL_ARG_SRC, tape.value(op.input)},
                      {DNNL_ARG_WEIGHTS, tape.forward_weights(layout_.forward, op.node)},
                      {DNNL_ARG_DST, tape.define_value(index_)}};
    if (node.bias) {
      args[DNNL_ARG_BIAS] =
          tape.parameter(bias_, tape.parameter_offset(op.node, ParameterKind::conv_bias));
    }
    tape.execute<dnnl::convolution_forward>("conv", forward_, std::move(args));
  }

  void build_backward(TapeBuilder& tape) override {
    tape.begin(index_, StepUse::parameters);
    build_backward_weights(tape);
    tape.begin(index_, StepUse::inputs);
    if (tape.wants_gradient(tape.op(index_).input)) build_backward_data(tape);
    tape.add_conv_layout(layout_);
    tape.release_gradient(index_);
  }

 private:
  void build_backward_weights(TapeBuilder& tape) {
    const LoweredOp& op = tape.op(index_);
    const auto desc = make_either(winograd_, [&](dnnl::algorithm algorithm) {
      return onednn::make_backward<dnnl::convolution_backward_weights>(
          tape.engine(), forward_, algorithm, tape.activation(op.input), any_gradient_, bias_,
          tape.activation(index_), strides_, padding_, padding_);
    });
    const Desc produced = desc.diff_weights_desc();
    const bool dense = produced.get_size() == canonical_.get_size();
    if (dense) layout_.master = produced;

    const int64_t offset = tape.parameter_offset(op.node, ParameterKind::conv_weight);
    const memory in_part = tape.in_part(layout_.master, offset);
    const memory out = dense ? in_part : tape.temporary(produced);
    const int out_buffer = dense ? -1 : tape.last_buffer();
    onednn::Args args{{DNNL_ARG_SRC, tape.value(op.input)},
                      {DNNL_ARG_DIFF_DST, tape.gradient(index_)},
                      {DNNL_ARG_DIFF_WEIGHTS, out}};
    if (bias_.get_size() > 0) {
      args[DNNL_ARG_DIFF_BIAS] =
          tape.in_part(bias_, tape.parameter_offset(op.node, ParameterKind::conv_bias));
    }
    tape.execute<dnnl::convolution_backward_weights>("conv_weights", desc, std::move(args));
    if (!dense) tape.copy(tape.bind(produced, out_buffer), in_part);
  }

  void build_backward_data(TapeBuilder& tape) {
    const LoweredOp& op = tape.op(index_);
    const auto desc = make_either(winograd_, [&](dnnl::algorithm algorithm) {
      return onednn::make_backward<dnnl::convolution_backward_data>(
          tape.engine(), forward_, algorithm, tape.activation(op.input), any_weights_,
          tape.activation(index_), strides_, padding_, padding_);
    });
    layout_.backward = desc.weights_desc();
    const TapeBuilder::Target target = tape.open_gradient(op.input, index_, false);
    tape.execute<dnnl::convolution_backward_data>(
        "conv_data", desc,
        {{DNNL_ARG_WEIGHTS, tape.backward_weights(layout_.backward, op.node)},
         {DNNL_ARG_DIFF_DST, tape.gradient(index_)},
         {DNNL_ARG_DIFF_SRC, target.memory}});
    tape.close_gradient(op.input, target);
  }

  const int index_;
  bool winograd_ = false;
  Desc canonical_, any_weights_, any_gradient_, bias_;
  Dims strides_, padding_;
  dnnl::convolution_forward::primitive_desc forward_;
  ConvLayout layout_;
};

}  // namespace

std::unique_ptr<TapeOp> make_conv_op(int op_index) { return std::make_unique<ConvOp>(op_index); }

}  // namespace stoker
