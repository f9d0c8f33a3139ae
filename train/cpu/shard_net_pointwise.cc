#include "train/cpu/shard_net_builder.h"

namespace stoker {
namespace {

// GELU reads its input again in the backward pass, ReLU its own output.
class ActivationOp : public TapeOp {
 public:
  explicit ActivationOp(int index) : index_(index) {}

  void build_forward(TapeBuilder& tape) override {
    const LoweredOp& op = tape.op(index_);
    const bool relu = op.kind == OpKind::relu;
    algorithm_ = relu ? dnnl::algorithm::eltwise_relu : dnnl::algorithm::eltwise_gelu_erf;
    const auto desc = onednn::eltwise_forward(tape.engine(), algorithm_, tape.activation(index_));
    tape.execute<dnnl::eltwise_forward>(
        relu ? "relu" : "gelu", desc,
        {{DNNL_ARG_SRC, tape.value(op.input)}, {DNNL_ARG_DST, tape.define_value(index_)}});
  }

  void build_backward(TapeBuilder& tape) override {
    const LoweredOp& op = tape.op(index_);
    if (!tape.wants_gradient(op.input)) return tape.release_gradient(index_);
    const bool relu = op.kind == OpKind::relu;
    const onednn::Desc data = tape.activation(index_);
    const auto algorithm = relu ? dnnl::algorithm::eltwise_relu_use_dst_for_bwd : algorithm_;
    const auto forward = onednn::eltwise_forward(tape.engine(), algorithm, data);
    const auto desc = onednn::eltwise_backward(tape.engine(), forward, algorithm, data);
    const TapeBuilder::Target target = tape.open_gradient(op.input, index_, true);
    onednn::Args args{{DNNL_ARG_DIFF_DST, tape.gradient(index_)},
                      {DNNL_ARG_DIFF_SRC, target.memory}};
    args[relu ? DNNL_ARG_DST : DNNL_ARG_SRC] = tape.value(relu ? index_ : op.input);
    tape.execute<dnnl::eltwise_backward>(relu ? "relu_back" : "gelu_back", desc, std::move(args));
    tape.close_gradient(op.input, target);
    tape.release_gradient(index_);
  }

 private:
  const int index_;
  dnnl::algorithm algorithm_ = dnnl::algorithm::undef;
};

// The sum goes over the branch's last value where nothing else wants that.
class AddOp : public TapeOp {
 public:
  explicit AddOp(int index) : index_(index) {}

  void build_forward(TapeBuilder& tape) override {
    const LoweredOp& op = tape.op(index_);
    const auto free_after = [&](int input) {
      return tape.op(input).readers == 1 && input != 0 && !tape.value_needed_backward(input);
    };
    const bool swapped = !free_after(op.input) && free_after(op.input2);
    const int first = swapped ? op.input2 : op.input;
    const int second = swapped ? op.input : op.input2;
    const int reuse = free_after(first) && first != second ? tape.value_buffer(first) : -1;
    // oneDNN 2.6's addition with a ReLU is wrong where blocks of channels are padded.
    const onednn::Desc data = tape.activation(index_);
    const bool fused = op.relu && !tape.is_padded(index_);
    const auto desc = onednn::binary_add(tape.engine(), data, fused);
    tape.execute<dnnl::binary>(fused ? "add_relu" : "add", desc,
                               {{DNNL_ARG_SRC_0, tape.value(first)},
                                {DNNL_ARG_SRC_1, tape.value(second)},
                                {DNNL_ARG_DST, tape.define_value(index_, reuse)}});
    if (op.relu && !fused) build_relu(tape, data);
  }

  void build_backward(TapeBuilder& tape) override {
    const LoweredOp& op = tape.op(index_);
    if (op.relu) build_mask(tape);
    if (tape.wants_gradient(op.input)) tape.share_gradient(op.input, index_);
    if (tape.wants_gradient(op.input2)) tape.share_gradient(op.input2, index_);
    tape.release_gradient(index_);
  }

 private:
  void build_relu(TapeBuilder& tape, const onednn::Desc& data) {
    const auto desc = onednn::eltwise_forward(tape.engine(), dnnl::algorithm::eltwise_relu, data);
    tape.execute<dnnl::eltwise_forward>(
        "relu", desc, {{DNNL_ARG_SRC, tape.value(index_)}, {DNNL_ARG_DST, tape.value(index_)}});
  }

  void build_mask(TapeBuilder& tape) {
    const onednn::Desc data = tape.activation(index_);
    constexpr auto algorithm = dnnl::algorithm::eltwise_relu_use_dst_for_bwd;
    const auto forward = onednn::eltwise_forward(tape.engine(), algorithm, data);
    const auto desc = onednn::eltwise_backward(tape.engine(), forward, algorithm, data);
    const dnnl::memory incoming = tape.gradient(index_);
    tape.execute<dnnl::eltwise_backward>("relu_back", desc,
                                         {{DNNL_ARG_DST, tape.value(index_)},
                                          {DNNL_ARG_DIFF_DST, incoming},
                                          {DNNL_ARG_DIFF_SRC, tape.rewritten_gradient(index_)}});
  }

  const int index_;
};

}  // namespace

std::unique_ptr<TapeOp> make_activation_op(int op_index) {
  return std::make_unique<ActivationOp>(op_index);
}

std::unique_ptr<TapeOp> make_add_op(int op_index) { return std::make_unique<AddOp>(op_index); }

}  // namespace stoker
