#include <algorithm>
#include <cstring>

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

// Pools by oneDNN: windows of one size at equal distances.
class WindowPoolSteps final : public CpuSteps {
 public:
  explicit WindowPoolSteps(int index) : index_(index) {}

  void build_forward(CpuPlanBuilder& builder) override {
    const FusedNode& node = builder.node(index_);
    const bool max = node.kind == OpKind::max_pool;
    algorithm_ = algorithm_of(node.kind);
    window_ = window_of(builder.spec(index_), builder.node(node.input).shape, node.shape);
    forward_ = onednn::pool_forward(builder.engine(), algorithm_, builder.activation(node.input),
                                    builder.activation(index_), window_);
    onednn::Args args{{DNNL_ARG_SRC, builder.value_view(node.input)},
                      {DNNL_ARG_DST, builder.new_value(index_)}};
    if (max) {
      const Desc desc = forward_.workspace_desc();
      workspace_ = builder.new_buffer(static_cast<int64_t>(desc.get_size()));
      args[DNNL_ARG_WORKSPACE] = builder.view(desc, workspace_);
    }
    builder.execute<dnnl::pooling_forward>(max ? "max_pool" : "avg_pool", forward_,
                                           std::move(args));
  }

  void build_backward(CpuPlanBuilder& builder) override {
    const FusedNode& node = builder.node(index_);
    const int dy = builder.take_gradient(index_, 1)[0];
    if (!builder.wants_gradient(node.input)) return builder.release(dy);
    const auto desc =
        onednn::pool_backward(builder.engine(), forward_, algorithm_,
                              builder.activation(node.input), builder.activation(index_), window_);
    const int dx = builder.new_gradient(node.input);
    onednn::Args args{{DNNL_ARG_DIFF_DST, builder.gradient_view(index_, builder.read(dy))},
                      {DNNL_ARG_DIFF_SRC, builder.gradient_view(node.input, dx)}};
    if (workspace_ >= 0) {
      args[DNNL_ARG_WORKSPACE] = builder.read_view(forward_.workspace_desc(), workspace_);
    }
    builder.execute<dnnl::pooling_backward>(workspace_ >= 0 ? "max_pool_back" : "avg_pool_back",
                                            desc, std::move(args));
    builder.release(dy);
  }

 private:
  const int index_;
  dnnl::algorithm algorithm_ = dnnl::algorithm::undef;
  onednn::PoolWindow window_;
  dnnl::pooling_forward::primitive_desc forward_;
  int workspace_ = -1;  // buffer
};

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

// An adaptive pool whose windows overlap or differ in size.
class UnevenPoolSteps final : public CpuSteps {
 public:
  explicit UnevenPoolSteps(int index) : index_(index) {}

  void build_forward(CpuPlanBuilder& builder) override {
    const int input = builder.node(index_).input;
    builder.append("adaptive_pool", 0,
                   [args = args(builder), from = builder.value_view(input),
                    to = builder.new_value(index_)](const MicroBatchRun&) {
                     with_numbers(args.precision, from, to, [&](const auto* in, auto* out) {
                       adaptive_forward(args, in, out);
                     });
                   });
  }

  void build_backward(CpuPlanBuilder& builder) override {
    const int input = builder.node(index_).input;
    const int dy = builder.take_gradient(index_, 1)[0];
    if (!builder.wants_gradient(input)) return builder.release(dy);
    const dnnl::memory from = builder.gradient_view(index_, builder.read(dy));
    const dnnl::memory to = builder.gradient_view(input, builder.new_gradient(input));
    builder.append("adaptive_pool_back", 0, [args = args(builder), from, to](const MicroBatchRun&) {
      with_numbers(args.precision, from, to,
                   [&](const auto* in, auto* out) { adaptive_backward(args, in, out); });
    });
    builder.release(dy);
  }

 private:
  AdaptiveArgs args(const CpuPlanBuilder& builder) const {
    return {ActivationOrder(builder, builder.node(index_).input), ActivationOrder(builder, index_),
            builder.precision(index_)};
  }

  const int index_;
};

class CpuPoolSteps final : public CpuSteps {
 public:
  explicit CpuPoolSteps(int index) : index_(index) {}

  void build_forward(CpuPlanBuilder& builder) override {
    const FusedNode& node = builder.node(index_);
    const NodeShape& in = builder.node(node.input).shape;
    const bool even = in.height % node.shape.height == 0 && in.width % node.shape.width == 0;
    if (node.kind == OpKind::adaptive_avg_pool && !even) {
      steps_ = std::make_unique<UnevenPoolSteps>(index_);
    } else {
      steps_ = std::make_unique<WindowPoolSteps>(index_);
    }
    steps_->build_forward(builder);
  }
  void build_backward(CpuPlanBuilder& builder) override { steps_->build_backward(builder); }

 private:
  const int index_;
  std::unique_ptr<CpuSteps> steps_;
};

// Input and output as (row, block of channels, y, x, channel of the block). In NHWC a pixel is one
// block.
struct PaddedShape {
  int rows, stride;
  int in_blocks, in_height, in_width, in_lanes;  // lanes: channels of a block
  int out_blocks, out_height, out_width, out_lanes;
  int channels;   // of the input, the side with fewer channels
  size_t number;  // bytes per value
};

PaddedShape pad_shape(const CpuPlanBuilder& builder, int index) {
  const FusedNode& node = builder.node(index);
  const NodeShape &in = builder.node(node.input).shape, &out = node.shape;
  const bool blocked = builder.activation_layout() == ActivationLayout::blocked;
  const auto lanes = [&](int channels) { return blocked ? kBlockChannels : channels; };
  const auto blocks = [&](int channels) {
    return (channels + lanes(channels) - 1) / lanes(channels);
  };
  PaddedShape s{};
  s.rows = builder.options().rows;
  s.stride = builder.spec(index).stride;
  s.in_blocks = blocks(in.channels);
  s.in_height = in.height;
  s.in_width = in.width;
  s.in_lanes = lanes(in.channels);
  s.out_blocks = blocks(out.channels);
  s.out_height = out.height;
  s.out_width = out.width;
  s.out_lanes = lanes(out.channels);
  s.channels = in.channels;
  s.number = static_cast<size_t>(bytes_of(builder.precision(index)));
  return s;
}

// Calls visit(offset in the output, offset in the input, bytes that they share); 0 bytes: the input
// has no channels there. Offsets in bytes.
template <typename Visit>
void for_each_pixel(const PaddedShape& s, Visit visit) {
  for (int row = 0; row < s.rows; ++row) {
    for (int block = 0; block < s.out_blocks; ++block) {
      const int lanes = std::clamp(s.channels - block * s.in_lanes, 0, s.in_lanes);
      const size_t out_plane = static_cast<size_t>(row) * s.out_blocks + block;
      const size_t in_plane = static_cast<size_t>(row) * s.in_blocks + block;
      for (int y = 0; y < s.out_height; ++y) {
        const size_t out_line = (out_plane * s.out_height + y) * s.out_width;
        const size_t in_line = (in_plane * s.in_height + y * s.stride) * s.in_width;
        for (int x = 0; x < s.out_width; ++x) {
          visit((out_line + x) * s.out_lanes * s.number,
                (in_line + x * s.stride) * s.in_lanes * s.number, lanes * s.number);
        }
      }
    }
  }
}

class CpuPadSteps final : public CpuSteps {
 public:
  explicit CpuPadSteps(int index) : index_(index) {}

  void build_forward(CpuPlanBuilder& builder) override {
    const PaddedShape shape = pad_shape(builder, index_);
    builder.append("pad_channels", 0,
                   [shape, from = builder.value_view(builder.node(index_).input),
                    to = builder.new_value(index_)](const MicroBatchRun&) {
                     const auto* in_data = static_cast<const std::byte*>(from.get_data_handle());
                     auto* out_data = static_cast<std::byte*>(to.get_data_handle());
                     const size_t out_block = shape.out_lanes * shape.number;
                     for_each_pixel(shape, [&](size_t wide, size_t narrow, size_t bytes) {
                       if (bytes > 0) std::memcpy(out_data + wide, in_data + narrow, bytes);
                       std::memset(out_data + wide + bytes, 0, out_block - bytes);
                     });
                   });
  }

  void build_backward(CpuPlanBuilder& builder) override {
    const FusedNode& node = builder.node(index_);
    const int dy = builder.take_gradient(index_, 1)[0];
    if (!builder.wants_gradient(node.input)) return builder.release(dy);
    const PaddedShape shape = pad_shape(builder, index_);
    const int dx = builder.new_gradient(node.input);
    const size_t bytes = builder.activation(node.input).get_size();
    builder.append("pad_channels_back", 0,
                   [shape, bytes, from = builder.gradient_view(index_, builder.read(dy)),
                    to = builder.gradient_view(node.input, dx)](const MicroBatchRun&) {
                     const auto* wide_data = static_cast<const std::byte*>(from.get_data_handle());
                     auto* narrow_data = static_cast<std::byte*>(to.get_data_handle());
                     std::memset(narrow_data, 0, bytes);
                     for_each_pixel(shape, [&](size_t wide, size_t narrow, size_t shared) {
                       if (shared > 0) std::memcpy(narrow_data + narrow, wide_data + wide, shared);
                     });
                   });
    builder.release(dy);
  }

 private:
  const int index_;
};

}  // namespace

std::unique_ptr<CpuSteps> make_cpu_pool(int index) { return std::make_unique<CpuPoolSteps>(index); }

std::unique_ptr<CpuSteps> make_cpu_pad(int index) { return std::make_unique<CpuPadSteps>(index); }

}  // namespace stoker
