#include <algorithm>
#include <cstring>

#include "train/cpu/shard_net_builder.h"

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
  // What the last window reaches beyond the picture; pixels that no window reaches need no padding.
  const auto after = [&](int in_size, int out_size) {
    return std::max(0, (out_size - 1) * node.stride + node.kernel - in_size - node.padding);
  };
  w.padding_after = {after(in.height, out.height), after(in.width, out.width)};
  return w;
}

class PoolOp : public TapeOp {
 public:
  explicit PoolOp(int index) : index_(index) {}

  void build_forward(TapeBuilder& tape) override {
    const LoweredOp& op = tape.op(index_);
    const bool max = op.kind == OpKind::max_pool;
    algorithm_ = max ? dnnl::algorithm::pooling_max : dnnl::algorithm::pooling_avg_exclude_padding;
    window_ = window_of(tape.node(index_), tape.op(op.input).shape, op.shape);
    forward_ = onednn::pool_forward(tape.engine(), algorithm_, tape.activation(op.input),
                                    tape.activation(index_), window_);
    onednn::Args args{{DNNL_ARG_SRC, tape.value(op.input)},
                      {DNNL_ARG_DST, tape.define_value(index_)}};
    if (max) {
      const Desc desc = forward_.workspace_desc();
      workspace_ = tape.new_buffer(static_cast<int64_t>(desc.get_size()));
      args[DNNL_ARG_WORKSPACE] = tape.bind(desc, workspace_);
    }
    tape.execute<dnnl::pooling_forward>(max ? "max_pool" : "avg_pool", forward_, std::move(args));
  }

  void build_backward(TapeBuilder& tape) override {
    const LoweredOp& op = tape.op(index_);
    if (!tape.wants_gradient(op.input)) return tape.release_gradient(index_);
    const auto desc =
        onednn::pool_backward(tape.engine(), forward_, algorithm_, tape.activation(op.input),
                              tape.activation(index_), window_);
    const TapeBuilder::Target target = tape.open_gradient(op.input, index_, false);
    onednn::Args args{{DNNL_ARG_DIFF_DST, tape.gradient(index_)},
                      {DNNL_ARG_DIFF_SRC, target.memory}};
    if (workspace_ >= 0)
      args[DNNL_ARG_WORKSPACE] = tape.bind(forward_.workspace_desc(), workspace_);
    tape.execute<dnnl::pooling_backward>(workspace_ >= 0 ? "max_pool_back" : "avg_pool_back", desc,
                                         std::move(args));
    tape.close_gradient(op.input, target);
    tape.release_gradient(index_);
  }

 private:
  const int index_;
  dnnl::algorithm algorithm_ = dnnl::algorithm::undef;
  onednn::PoolWindow window_;
  dnnl::pooling_forward::primitive_desc forward_;
  int workspace_ = -1;  // buffer
};

// Both sides as (row, block of channels, y, x, channel of the block). In NHWC a pixel is one block.
struct PadShape {
  int rows, stride;
  int in_blocks, in_height, in_width, in_lanes;  // lanes: numbers of a block
  int out_blocks, out_height, out_width, out_lanes;
  int channels;   // of the narrow side
  size_t number;  // bytes
};

PadShape pad_shape(const TapeBuilder& tape, int op_index) {
  const LoweredOp& op = tape.op(op_index);
  const NodeShape &in = tape.op(op.input).shape, &out = op.shape;
  const bool blocked = tape.layout() == ActivationLayout::blocked;
  const auto lanes = [&](int channels) { return blocked ? kBlockChannels : channels; };
  const auto blocks = [&](int channels) {
    return (channels + lanes(channels) - 1) / lanes(channels);
  };
  PadShape s{};
  s.rows = tape.options().rows;
  s.stride = tape.node(op_index).stride;
  s.in_blocks = blocks(in.channels);
  s.in_height = in.height;
  s.in_width = in.width;
  s.in_lanes = lanes(in.channels);
  s.out_blocks = blocks(out.channels);
  s.out_height = out.height;
  s.out_width = out.width;
  s.out_lanes = lanes(out.channels);
  s.channels = in.channels;
  s.number = dnnl::memory::data_type_size(tape.activation_type());
  return s;
}

// visit(offset on the wide side, offset on the narrow side, bytes that they share); bytes of 0: the
// narrow side has nothing there. Offsets in bytes.
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

class PadChannelsOp : public TapeOp {
 public:
  explicit PadChannelsOp(int index) : index_(index) {}

  void build_forward(TapeBuilder& tape) override {
    const PadShape shape = pad_shape(tape, index_);
    tape.append("pad_channels", [shape, from = tape.value(tape.op(index_).input),
                                 to = tape.define_value(index_)](const ShardRun&) {
      const auto* in_data = static_cast<const std::byte*>(from.get_data_handle());
      auto* out_data = static_cast<std::byte*>(to.get_data_handle());
      const size_t out_block = shape.out_lanes * shape.number;
      for_each_pixel(shape, [&](size_t wide, size_t narrow, size_t bytes) {
        if (bytes > 0) std::memcpy(out_data + wide, in_data + narrow, bytes);
        std::memset(out_data + wide + bytes, 0, out_block - bytes);
      });
    });
  }

  void build_backward(TapeBuilder& tape) override {
    const LoweredOp& op = tape.op(index_);
    if (!tape.wants_gradient(op.input)) return tape.release_gradient(index_);
    const PadShape shape = pad_shape(tape, index_);
    const TapeBuilder::Target target = tape.open_gradient(op.input, index_, false);
    const size_t bytes = tape.activation(op.input).get_size();
    tape.append("pad_channels_back",
                [shape, bytes, from = tape.gradient(index_), to = target.memory](const ShardRun&) {
                  const auto* wide_data = static_cast<const std::byte*>(from.get_data_handle());
                  auto* narrow_data = static_cast<std::byte*>(to.get_data_handle());
                  std::memset(narrow_data, 0, bytes);
                  for_each_pixel(shape, [&](size_t wide, size_t narrow, size_t shared) {
                    if (shared > 0) std::memcpy(narrow_data + narrow, wide_data + wide, shared);
                  });
                });
    tape.close_gradient(op.input, target);
    tape.release_gradient(index_);
  }

 private:
  const int index_;
};

}  // namespace

std::unique_ptr<TapeOp> make_pool_op(int op_index) { return std::make_unique<PoolOp>(op_index); }

std::unique_ptr<TapeOp> make_pad_channels_op(int op_index) {
  return std::make_unique<PadChannelsOp>(op_index);
}

}  // namespace stoker
