// oneDNN's operations on each value, and dropout, which oneDNN has not.
#include "train/cpu/activation_order.h"
#include "train/engine/dropout.h"

namespace stoker {
namespace {

// The slope, from what reads_output() says.
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

struct DropoutArgs {
  ActivationOrder order;
  Precision precision;
  uint64_t key;
  float rate;
};

// Multiplies values, or their gradients, by the factors that their places draw.
template <typename Number>
void apply_dropout(const DropoutArgs& a, int64_t position, const Number* from, Number* to) {
  const ActivationOrder& o = a.order;
  for (int row = 0; row < o.rows; ++row) {
    const uint64_t key = dropout_row_key(a.key, position + row);
    for (int c = 0; c < o.stored_channels(); ++c) {
      for (int64_t pixel = 0; pixel < o.pixels(); ++pixel) {
        const int64_t at = o.at(row, c, 0, static_cast<int>(pixel));
        const float factor =
            c < o.channels ? dropout_factor(key, c * o.pixels() + pixel, a.rate) : 0.0f;
        set_number(to, at, factor == 0 ? 0.0f : factor * number_at(from, at));
      }
    }
  }
}

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

void CpuPlanBuilder::activate(int index, int x, int y) {
  const onednn::Desc data = activation(index);
  const auto desc =
      onednn::eltwise_forward(engine_, forward_algorithm(node(index).activation), data);
  execute<dnnl::eltwise_forward>("activation", desc,
                                 {{DNNL_ARG_SRC, view(data, x)}, {DNNL_ARG_DST, view(data, y)}});
}

void CpuPlanBuilder::activate_back(int index, int seen, int dy, int dx) {
  const onednn::Desc data = activation(index);
  const Activation kind = node(index).activation;
  const auto algorithm = backward_algorithm(kind);
  const auto forward = onednn::eltwise_forward(engine_, algorithm, data);
  execute<dnnl::eltwise_backward>(
      "activation_back", onednn::eltwise_backward(engine_, forward, algorithm, data),
      {{reads_output(kind) ? DNNL_ARG_DST : DNNL_ARG_SRC, view(data, seen)},
       {DNNL_ARG_DIFF_DST, view(data, dy)},
       {DNNL_ARG_DIFF_SRC, view(data, dx)}});
}

void CpuPlanBuilder::add(int index, int a, int b, int y) {
  const onednn::Desc data = activation(index);
  const bool relu = node(index).activation == Activation::relu;
  // oneDNN 2.6's addition with a ReLU is wrong if the last block of channels is not full.
  const bool full = !in_blocks(index) || node(index).shape.channels % kBlockChannels == 0;
  const bool fused = relu && full;
  execute<dnnl::binary>(fused ? "add_relu" : "add", onednn::binary_add(engine_, data, fused),
                        {{DNNL_ARG_SRC_0, view(data, a)},
                         {DNNL_ARG_SRC_1, view(data, b)},
                         {DNNL_ARG_DST, view(data, y)}});
  if (!relu || fused) return;
  execute<dnnl::eltwise_forward>(
      "relu", onednn::eltwise_forward(engine_, dnnl::algorithm::eltwise_relu, data),
      {{DNNL_ARG_SRC, view(data, read(y))}, {DNNL_ARG_DST, view(data, write(y))}});
}

void CpuPlanBuilder::add_gradients(int index, int a, int b, int sum) {
  if (sum == b) std::swap(a, b);  // oneDNN can overwrite only its first source
  const onednn::Desc data = activation(index);
  execute<dnnl::binary>("add_gradients", onednn::binary_add(engine_, data, false),
                        {{DNNL_ARG_SRC_0, view(data, a)},
                         {DNNL_ARG_SRC_1, view(data, b)},
                         {DNNL_ARG_DST, view(data, sum)}});
}

void CpuPlanBuilder::dropout(const char* name, int index, int from, int to) {
  const DropoutArgs args{ActivationOrder(*this, index), precision(index),
                         dropout_key(options().seed, node(index).node), spec(index).rate};
  append(name, 0,
         [args, from = view(activation(index), from),
          to = view(activation(index), to)](const MicroBatchRun& run) {
           with_numbers(args.precision, from, to, [&](const auto* in, auto* out) {
             apply_dropout(args, run.rows.position, in, out);
           });
         });
}

}  // namespace stoker
