#include "train/cpu/plan_builder.h"

namespace stoker {
namespace {

// In the backward pass GELU reads its input again, and ReLU its output.
class ActivationSteps final : public CpuSteps {
 public:
  explicit ActivationSteps(int index) : index_(index) {}

  void build_forward(CpuPlanBuilder& builder) override {
    const FusedNode& node = builder.node(index_);
    const bool relu = node.kind == OpKind::relu;
    algorithm_ = relu ? dnnl::algorithm::eltwise_relu : dnnl::algorithm::eltwise_gelu_erf;
    const auto desc =
        onednn::eltwise_forward(builder.engine(), algorithm_, builder.activation(index_));
    builder.execute<dnnl::eltwise_forward>(relu ? "relu" : "gelu", desc,
                                           {{DNNL_ARG_SRC, builder.value_view(node.input)},
                                            {DNNL_ARG_DST, builder.new_value(index_)}});
  }

  void build_backward(CpuPlanBuilder& builder) override {
    const FusedNode& node = builder.node(index_);
    const int dy = builder.take_gradient(index_, 1)[0];
    if (!builder.wants_gradient(node.input)) return builder.release(dy);
    const bool relu = node.kind == OpKind::relu;
    const onednn::Desc data = builder.activation(index_);
    const auto algorithm = relu ? dnnl::algorithm::eltwise_relu_use_dst_for_bwd : algorithm_;
    const auto forward = onednn::eltwise_forward(builder.engine(), algorithm, data);
    const auto desc = onednn::eltwise_backward(builder.engine(), forward, algorithm, data);
    const int dx = builder.gradient_over(node.input, dy);
    onednn::Args args{{DNNL_ARG_DIFF_DST, builder.gradient_view(index_, builder.read(dy))},
                      {DNNL_ARG_DIFF_SRC, builder.gradient_view(node.input, dx)}};
    args[relu ? DNNL_ARG_DST : DNNL_ARG_SRC] = builder.value_view(relu ? index_ : node.input);
    builder.execute<dnnl::eltwise_backward>(relu ? "relu_back" : "gelu_back", desc,
                                            std::move(args));
    builder.release(dy);
  }

 private:
  const int index_;
  dnnl::algorithm algorithm_ = dnnl::algorithm::undef;
};

// The sum overwrites the last value of a branch if nothing else needs that value.
class AddSteps final : public CpuSteps {
 public:
  explicit AddSteps(int index) : index_(index) {}

  void build_forward(CpuPlanBuilder& builder) override {
    const FusedNode& node = builder.node(index_);
    const auto free_after = [&](int input) {
      return builder.node(input).readers == 1 && input != 0 &&
             !builder.value_needed_backward(input);
    };
    const bool swapped = !free_after(node.input) && free_after(node.input2);
    const int first = swapped ? node.input2 : node.input;
    const int second = swapped ? node.input : node.input2;
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
    const int passed = node.activation == Activation::relu ? build_mask(builder, dy) : dy;
    for (const int input : {node.input, node.input2}) {
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

  int build_mask(CpuPlanBuilder& builder, int dy) {
    const onednn::Desc data = builder.activation(index_);
    constexpr auto algorithm = dnnl::algorithm::eltwise_relu_use_dst_for_bwd;
    const auto forward = onednn::eltwise_forward(builder.engine(), algorithm, data);
    const auto desc = onednn::eltwise_backward(builder.engine(), forward, algorithm, data);
    const int masked =
        builder.owned(dy) ? builder.write(dy) : builder.new_buffer(builder.value_bytes(index_));
    builder.execute<dnnl::eltwise_backward>(
        "relu_back", desc,
        {{DNNL_ARG_DST, builder.value_view(index_)},
         {DNNL_ARG_DIFF_DST, builder.gradient_view(index_, builder.read(dy))},
         {DNNL_ARG_DIFF_SRC, builder.gradient_view(index_, masked)}});
    return masked;
  }

  const int index_;
};

}  // namespace

std::unique_ptr<CpuSteps> make_cpu_activation(int index) {
  return std::make_unique<ActivationSteps>(index);
}

std::unique_ptr<CpuSteps> make_cpu_add(int index) { return std::make_unique<AddSteps>(index); }

}  // namespace stoker
