#include "train/cpu/plan_builder.h"

namespace stoker {
namespace {

class CpuActivationSteps final : public CpuSteps {
 public:
  explicit CpuActivationSteps(int index) : index_(index) {}

  void build_forward(CpuPlanBuilder& builder) override {
    const FusedNode& node = builder.node(index_);
    const auto desc = onednn::eltwise_forward(builder.engine(), forward_algorithm(node.activation),
                                              builder.activation(index_));
    builder.execute<dnnl::eltwise_forward>("activation", desc,
                                           {{DNNL_ARG_SRC, builder.value_view(node.input)},
                                            {DNNL_ARG_DST, builder.new_value(index_)}});
  }

  void build_backward(CpuPlanBuilder& builder) override {
    const FusedNode& node = builder.node(index_);
    const int dy = builder.take_gradient(index_, 1)[0];
    if (!builder.wants_gradient(node.input)) return builder.release(dy);
    const onednn::Desc data = builder.activation(index_);
    const auto algorithm = backward_algorithm(node.activation);
    const auto forward = onednn::eltwise_forward(builder.engine(), algorithm, data);
    const auto desc = onednn::eltwise_backward(builder.engine(), forward, algorithm, data);
    const int dx = builder.gradient_over(node.input, dy);
    onednn::Args args{{DNNL_ARG_DIFF_DST, builder.gradient_view(index_, builder.read(dy))},
                      {DNNL_ARG_DIFF_SRC, builder.gradient_view(node.input, dx)}};
    const bool output = reads_output(node.activation);
    args[output ? DNNL_ARG_DST : DNNL_ARG_SRC] = builder.value_view(output ? index_ : node.input);
    builder.execute<dnnl::eltwise_backward>("activation_back", desc, std::move(args));
    builder.release(dy);
  }

 private:
  const int index_;
};

// The sum overwrites the last value of a branch if nothing else needs that value.
class CpuAddSteps final : public CpuSteps {
 public:
  explicit CpuAddSteps(int index) : index_(index) {}

  void build_forward(CpuPlanBuilder& builder) override {
    const FusedNode& node = builder.node(index_);
    const auto free_after = [&](int input) {
      return builder.node(input).readers == 1 && input != 0 &&
             !builder.value_needed_backward(input);
    };
    const int other = node.more_inputs[0];
    const bool swapped = !free_after(node.input) && free_after(other);
    const int first = swapped ? other : node.input;
    const int second = swapped ? node.input : other;
    const int sum = free_after(first) && first != second
                        ? builder.define_value_over(index_, builder.value_buffer(first))
                        : builder.define_value(index_);
    // oneDNN 2.6's addition with a ReLU is wrong if blocks of channels are padded.
    const onednn::Desc data = builder.activation(index_);
    const bool relu = node.activation == Activation::relu;
    const bool fused = relu && !builder.is_padded(index_);
    const auto desc = onednn::binary_add(builder.engine(), data, fused);
    builder.execute<dnnl::binary>(fused ? "add_relu" : "add", desc,
                                  {{DNNL_ARG_SRC_0, builder.value_view(first)},
                                   {DNNL_ARG_SRC_1, builder.value_view(second)},
                                   {DNNL_ARG_DST, builder.view(data, sum)}});
    if (relu && !fused) build_relu(builder, data);
  }

  void build_backward(CpuPlanBuilder& builder) override {
    const FusedNode& node = builder.node(index_);
    const int dy = builder.take_gradient(index_, 1)[0];
    const int passed =
        node.activation == Activation::relu ? append_activation_back(builder, index_, dy) : dy;
    for (const int input : inputs_of(node)) {
      if (builder.wants_gradient(input)) builder.pass_gradient(input, passed);
    }
    builder.release(dy);
  }

 private:
  void build_relu(CpuPlanBuilder& builder, const onednn::Desc& data) {
    const auto desc =
        onednn::eltwise_forward(builder.engine(), dnnl::algorithm::eltwise_relu, data);
    builder.execute<dnnl::eltwise_forward>(
        "relu", desc,
        {{DNNL_ARG_SRC, builder.value_view(index_)},
         {DNNL_ARG_DST, builder.view(data, builder.write(builder.value_buffer(index_)))}});
  }

  const int index_;
};

}  // namespace

dnnl::algorithm forward_algorithm(Activation activation) {
  switch (activation) {
    case Activation::gelu:
      return dnnl::algorithm::eltwise_gelu_erf;
    case Activation::tanh:
      return dnnl::algorithm::eltwise_tanh;
    case Activation::sigmoid:
      return dnnl::algorithm::eltwise_logistic;
    default:
      return dnnl::algorithm::eltwise_relu;
  }
}

dnnl::algorithm backward_algorithm(Activation activation) {
  switch (activation) {
    case Activation::gelu:
      return dnnl::algorithm::eltwise_gelu_erf;
    case Activation::tanh:
      return dnnl::algorithm::eltwise_tanh_use_dst_for_bwd;
    case Activation::sigmoid:
      return dnnl::algorithm::eltwise_logistic_use_dst_for_bwd;
    default:
      return dnnl::algorithm::eltwise_relu_use_dst_for_bwd;
  }
}

int append_activation_back(CpuPlanBuilder& builder, int index, int dy) {
  const onednn::Desc data = builder.activation(index);
  const auto algorithm = backward_algorithm(builder.node(index).activation);
  const auto forward = onednn::eltwise_forward(builder.engine(), algorithm, data);
  const auto desc = onednn::eltwise_backward(builder.engine(), forward, algorithm, data);
  const int before =
      builder.owned(dy) ? builder.write(dy) : builder.new_buffer(builder.value_bytes(index));
  builder.execute<dnnl::eltwise_backward>(
      "activation_back", desc,
      {{DNNL_ARG_DST, builder.value_view(index)},
       {DNNL_ARG_DIFF_DST, builder.gradient_view(index, builder.read(dy))},
       {DNNL_ARG_DIFF_SRC, builder.gradient_view(index, before)}});
  return before;
}

std::unique_ptr<CpuSteps> make_cpu_activation(int index) {
  return std::make_unique<CpuActivationSteps>(index);
}

std::unique_ptr<CpuSteps> make_cpu_add(int index) { return std::make_unique<CpuAddSteps>(index); }

}  // namespace stoker
