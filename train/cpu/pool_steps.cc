#include <algorithm>

#include "train/cpu/activation_order.h"

namespace stoker {
namespace {

using onednn::Desc;

// Returns the window of an adaptive pool that divides its input evenly.
onednn::PoolWindow even_window(const NodeShape& in, const NodeShape& out) {
  onednn::PoolWindow w;
  w.stride = w.kernel = {in.height / out.height, in.width / out.width};
  w.padding_before = w.padding_after = {0, 0};
  return w;
}

onednn::PoolWindow window_of(const NetNode& node, const NodeShape& in, const NodeShape& out) {
  if (node.kind == OpKind::adaptive_avg_pool) return even_window(in, out);
  onednn::PoolWindow w;
  w.stride = {node.stride, node.stride};
  w.kernel = {node.kernel.height, node.kernel.width};
  w.padding_before = {node.padding.height, node.padding.width};
  // How far the last window reaches beyond the image; pixels that no window covers need no padding.
  const auto after = [&](int in_size, int out_size, int kernel, int padding) {
    return std::max(0, (out_size - 1) * node.stride + kernel - in_size - padding);
  };
  w.padding_after = {after(in.height, out.height, node.kernel.height, node.padding.height),
                     after(in.width, out.width, node.kernel.width, node.padding.width)};
  return w;
}

dnnl::algorithm algorithm_of(OpKind kind) {
  return kind == OpKind::max_pool ? dnnl::algorithm::pooling_max
                                  : dnnl::algorithm::pooling_avg_include_padding;
}

// The pixels of the input that an adaptive pool averages for one output, as in PyTorch.
struct AdaptiveWindow {
  int begin, end;

  AdaptiveWindow(int in_size, int out_size, int at)
      : begin(at * in_size / out_size), end(((at + 1) * in_size + out_size - 1) / out_size) {}
  int size() const { return end - begin; }
  bool has(int pixel) const { return begin <= pixel && pixel < end; }
};

struct AdaptiveArgs {
  ActivationOrder in, out;
  Precision precision;
};

template <typename Visit>  // visit(row, channel, y, x) of every value, with those of padding
void for_each_value(const ActivationOrder& o, const Visit& visit) {
  for (int row = 0; row < o.rows; ++row) {
    for (int c = 0; c < o.stored_channels(); ++c) {
      for (int y = 0; y < o.height; ++y) {
        for (int x = 0; x < o.width; ++x) visit(row, c, y, x);
      }
    }
  }
}

template <typename Number>
void adaptive_forward(const AdaptiveArgs& a, const Number* in, Number* out) {
  for_each_value(a.out, [&](int row, int c, int y, int x) {
    const AdaptiveWindow down(a.in.height, a.out.height, y), across(a.in.width, a.out.width, x);
    float sum = 0;
    for (int in_y = down.begin; in_y < down.end; ++in_y) {
      for (int in_x = across.begin; in_x < across.end; ++in_x) {
        sum += number_at(in, a.in.at(row, c, in_y, in_x));
      }
    }
    set_number(out, a.out.at(row, c, y, x), sum / static_cast<float>(down.size() * across.size()));
  });
}

template <typename Number>
void adaptive_backward(const AdaptiveArgs& a, const Number* dy, Number* dx) {
  for_each_value(a.in, [&](int row, int c, int y, int x) {
    float sum = 0;
    for (int out_y = 0; out_y < a.out.height; ++out_y) {
      const AdaptiveWindow down(a.in.height, a.out.height, out_y);
      if (!down.has(y)) continue;
      for (int out_x = 0; out_x < a.out.width; ++out_x) {
        const AdaptiveWindow across(a.in.width, a.out.width, out_x);
        if (!across.has(x)) continue;
        const auto count = static_cast<float>(down.size() * across.size());
        sum += number_at(dy, a.out.at(row, c, out_y, out_x)) / count;
      }
    }
    set_number(dx, a.in.at(row, c, y, x), sum);
  });
}

// Returns whether the windows of a pool have one size and equal distances, as oneDNN's have.
bool has_even_windows(const CpuPlanBuilder& builder, int index) {
  const FusedNode& node = builder.node(index);
  const NodeShape& in = builder.node(node.input).shape;
  return node.kind != OpKind::adaptive_avg_pool ||
         (in.height % node.shape.height == 0 && in.width % node.shape.width == 0);
}

AdaptiveArgs adaptive_args(const CpuPlanBuilder& builder, int index) {
  return {ActivationOrder(builder, builder.node(index).input), ActivationOrder(builder, index),
          builder.precision(index)};
}

onednn::PoolWindow window_of(const CpuPlanBuilder& builder, int index) {
  const FusedNode& node = builder.node(index);
  return window_of(builder.spec(index), builder.node(node.input).shape, node.shape);
}

auto pool_desc(const CpuPlanBuilder& builder, int index) {
  return onednn::pool_forward(builder.engine(), algorithm_of(builder.node(index).kind),
                              builder.activation(builder.node(index).input),
                              builder.activation(index), window_of(builder, index));
}

}  // namespace

void CpuPlanBuilder::pool(int index, int x, int y) {
  const dnnl::memory from = view(activation(node(index).input), x);
  const dnnl::memory to = view(activation(index), y);
  if (!has_even_windows(*this, index)) {
    append("adaptive_pool", 0,
           [args = adaptive_args(*this, index), from, to](const MicroBatchRun&) {
             with_numbers(args.precision, from, to,
                          [&](const auto* in, auto* out) { adaptive_forward(args, in, out); });
           });
    return;
  }
  const auto desc = pool_desc(*this, index);
  onednn::Args args{{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, to}};
  const bool max = node(index).kind == OpKind::max_pool;
  if (max) {
    const Desc argmax = desc.workspace_desc();
    args[DNNL_ARG_WORKSPACE] = view(argmax, keep(index, static_cast<int64_t>(argmax.get_size())));
  }
  execute<dnnl::pooling_forward>(max ? "max_pool" : "avg_pool", desc, std::move(args));
}

void CpuPlanBuilder::pool_back(int index, int dy, int dx) {
  const Desc input = activation(node(index).input);
  const dnnl::memory from = view(activation(index), dy), to = view(input, dx);
  if (!has_even_windows(*this, index)) {
    append("adaptive_pool_back", 0,
           [args = adaptive_args(*this, index), from, to](const MicroBatchRun&) {
             with_numbers(args.precision, from, to,
                          [&](const auto* in, auto* out) { adaptive_backward(args, in, out); });
           });
    return;
  }
  const auto forward = pool_desc(*this, index);
  const OpKind kind = node(index).kind;
  onednn::Args args{{DNNL_ARG_DIFF_DST, from}, {DNNL_ARG_DIFF_SRC, to}};
  const bool max = kind == OpKind::max_pool;
  if (max) args[DNNL_ARG_WORKSPACE] = view(forward.workspace_desc(), kept(index));
  execute<dnnl::pooling_backward>(max ? "max_pool_back" : "avg_pool_back",
                                  onednn::pool_backward(engine_, forward, algorithm_of(kind), input,
                                                        activation(index), window_of(*this, index)),
                                  std::move(args));
}

}  // namespace stoker
