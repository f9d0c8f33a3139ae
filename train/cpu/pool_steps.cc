#include <algorithm>
#include <cstring>

#include "train/cpu/plan_builder.h"

namespace stoker {
namespace {

using onednn::Desc;

onednn::PoolWindow window_of(const NetNode& node, const NodeShape& in, const NodeShape& out) {
  onednn::PoolWindow w;
  if (node.kind == OpKind::global_avg_pool) {
    w.stride = w.kernel = {in.height, in.width};
    w.padding_before = w.padding_after = {0, 0};
    return w;
  }
  w.stride = {node.stride, node.stride};
  w.kernel = {node.kernel, node.kernel};
  w.padding_before = {node.padding, node.padding};
  // How far the last window reaches beyond the image; pixels that no window covers need no padding.
  const auto after = [&](int in_size, int out_size) {
    return std::max(0, (out_size - 1) * node.stride + node.kernel - in_size - node.padding);
  };
  w.padding_after = {after(in.height, out.height), after(in.width, out.width)};
  return w;
}

class PoolSteps final : public CpuSteps {
 public:
  explicit PoolSteps(int index) : index_(index) {}

  void build_forward(CpuPlanBuilder& builder) override {
    const FusedNode& node = builder.node(index_);
    const bool max = node.kind == OpKind::max_pool;
    algorithm_ = max ? dnnl::algorithm::pooling_max : dnnl::algorithm::pooling_avg_exclude_padding;
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

// Input and output as (row, block of channels, y, x, channel of the block). In NHWC a pixel is one
// block.
struct PadShape {
  int rows, stride;
  int in_blocks, in_height, in_width, in_lanes;  // lanes: channels of a block
  int out_blocks, out_height, out_width, out_lanes;
  int channels;   // of the input, the side with fewer channels
  size_t number;  // bytes per value
};

PadShape pad_shape(const CpuPlanBuilder& builder, int index) {
  const FusedNode& node = builder.node(index);
  const NodeShape &in = builder.node(node.input).shape, &out = node.shape;
  const bool blocked = builder.activation_layout() == ActivationLayout::blocked;
  const auto lanes = [&](int channels) { return blocked ? kBlockChannels : channels; };
  const auto blocks = [&](int channels) {
    return (channels + lanes(channels) - 1) / lanes(channels);
  };
  PadShape s{};
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
  s.number = dnnl::memory::data_type_size(builder.activation_type());
  return s;
}

// Calls visit(offset in the output, offset in the input, bytes that they share); 0 bytes: the input
// has no channels there. Offsets in bytes.
template <typename Visit>
void for_each_pixel(const PadShape& s, Visit visit) {
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

class PadSteps final : public CpuSteps {
 public:
  explicit PadSteps(int index) : index_(index) {}

  void build_forward(CpuPlanBuilder& builder) override {
    const PadShape shape = pad_shape(builder, index_);
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
    const PadShape shape = pad_shape(builder, index_);
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

std::unique_ptr<CpuSteps> make_cpu_pool(int index) { return std::make_unique<PoolSteps>(index); }

std::unique_ptr<CpuSteps> make_cpu_pad(int index) { return std::make_unique<PadSteps>(index); }

}  // namespace stoker
