#include <algorithm>
#include <cstring>

#include "train/shard_net_builder.h"

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

// Strides in bytes of one pixel of both sides.
struct PadShape {
  int rows, stride, in_height, in_width, out_height, out_width;
  size_t in_pixel, out_pixel;
};

template <typename Visit>  // visit(pixel of the wide side, pixel of the narrow side)
void for_each_pixel(const PadShape& s, Visit visit) {
  for (int row = 0; row < s.rows; ++row) {
    for (int y = 0; y < s.out_height; ++y) {
      for (int x = 0; x < s.out_width; ++x) {
        const size_t out = (static_cast<size_t>(row) * s.out_height + y) * s.out_width + x;
        const size_t in_line = static_cast<size_t>(row) * s.in_height + y * s.stride;
        visit(out * s.out_pixel, (in_line * s.in_width + x * s.stride) * s.in_pixel);
      }
    }
  }
}

class PadChannelsOp : public TapeOp {
 public:
  explicit PadChannelsOp(int index) : index_(index) {}

  void build_forward(TapeBuilder& tape) override {
    const LoweredOp& op = tape.op(index_);
    const NodeShape& in = tape.op(op.input).shape;
    const size_t number = dnnl::memory::data_type_size(tape.activation_type());
    shape_ = {tape.options().rows,
              tape.node(index_).stride,
              in.height,
              in.width,
              op.shape.height,
              op.shape.width,
              in.channels * number,
              op.shape.channels * number};
    tape.append("pad_channels", [shape = shape_, from = tape.value(op.input),
                                 to = tape.define_value(index_)](const ShardRun&) {
      const auto* in_data = static_cast<const std::byte*>(from.get_data_handle());
      auto* out_data = static_cast<std::byte*>(to.get_data_handle());
      for_each_pixel(shape, [&](size_t wide, size_t narrow) {
        std::memcpy(out_data + wide, in_data + narrow, shape.in_pixel);
        std::memset(out_data + wide + shape.in_pixel, 0, shape.out_pixel - shape.in_pixel);
      });
    });
  }

  void build_backward(TapeBuilder& tape) override {
    const LoweredOp& op = tape.op(index_);
    if (!tape.wants_gradient(op.input)) return tape.release_gradient(index_);
    const TapeBuilder::Target target = tape.open_gradient(op.input, index_, false);
    const size_t bytes = tape.activation(op.input).get_size();
    tape.append("pad_channels_back", [shape = shape_, bytes, from = tape.gradient(index_),
                                      to = target.memory](const ShardRun&) {
      const auto* wide_data = static_cast<const std::byte*>(from.get_data_handle());
      auto* narrow_data = static_cast<std::byte*>(to.get_data_handle());
      std::memset(narrow_data, 0, bytes);
      for_each_pixel(shape, [&](size_t wide, size_t narrow) {
        std::memcpy(narrow_data + narrow, wide_data + wide, shape.in_pixel);
      });
    });
    tape.close_gradient(op.input, target);
    tape.release_gradient(index_);
  }

 private:
  const int index_;
  PadShape shape_{};
};

}  // namespace

std::unique_ptr<TapeOp> make_pool_op(int op_index) { return std::make_unique<PoolOp>(op_index); }

std::unique_ptr<TapeOp> make_pad_channels_op(int op_index) {
  return std::make_unique<PadChannelsOp>(op_index);
}

}  // namespace stoker
