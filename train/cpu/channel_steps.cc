// Copies of channels: concatenations, and shortcuts that add channels of zeros.
#include <algorithm>
#include <cstring>

#include "train/cpu/activation_order.h"

namespace stoker {
namespace {

const std::byte* bytes_in(const dnnl::memory& memory) {
  return static_cast<const std::byte*>(memory.get_data_handle());
}
std::byte* bytes_out(const dnnl::memory& memory) {
  return static_cast<std::byte*>(memory.get_data_handle());
}

// As memcpy, whose call would take longer than the copy of a pixel's few channels.
void copy_run(std::byte* to, const std::byte* from, size_t bytes) {
  constexpr size_t kChunk = 16, kLong = 2048;
  if (bytes < kChunk || bytes >= kLong) {
    std::memcpy(to, from, bytes);
    return;
  }
  for (size_t at = 0; at + kChunk <= bytes; at += kChunk) std::memcpy(to + at, from + at, kChunk);
  std::memcpy(to + bytes - kChunk, from + bytes - kChunk, kChunk);
}

// Copies the channels of one part, which begin at `first` in the whole. Both have the same pixels.
// In blocks, `first` is a multiple of a block: activation_layout() sees to that.
struct PartCopy {
  ActivationOrder part, whole;
  int first;
  size_t number;  // bytes per value

  // Calls visit(offset in the part, offset in the whole, bytes).
  template <typename Visit>
  void for_each_run(const Visit& visit) const {
    const size_t run = part.blocked ? part.row_values() : part.channels;
    const int64_t runs = part.blocked ? 1 : part.pixels();
    for (int row = 0; row < part.rows; ++row) {
      for (int64_t i = 0; i < runs; ++i) {
        const int64_t to = part.blocked ? row * whole.row_values() + first * whole.pixels()
                                        : row * whole.row_values() + i * whole.channels + first;
        visit((row * part.row_values() + i * part.channels) * number, to * number, run * number);
      }
    }
  }
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

PartCopy part_copy(const CpuPlanBuilder& builder, int index, int part, int first) {
  return {ActivationOrder(builder, part), ActivationOrder(builder, index), first,
          static_cast<size_t>(bytes_of(builder.precision(index)))};
}

}  // namespace

void CpuPlanBuilder::concat(int index, const std::vector<int>& parts, int y) {
  std::vector<std::pair<PartCopy, dnnl::memory>> copies;
  int first = 0;
  for (const int input : inputs_of(node(index))) {
    copies.emplace_back(part_copy(*this, index, input, first),
                        view(activation(input), parts[copies.size()]));
    first += node(input).shape.channels;
  }
  append("concat", 0,
         [copies = std::move(copies), whole = view(activation(index), y)](const MicroBatchRun&) {
           std::byte* to = bytes_out(whole);
           for (const auto& [copy, part] : copies) {
             const std::byte* from = bytes_in(part);
             copy.for_each_run([&](size_t in_part, size_t in_whole, size_t bytes) {
               copy_run(to + in_whole, from + in_part, bytes);
             });
           }
         });
}

void CpuPlanBuilder::concat_back(int index, int part, int first, int dy, int dx) {
  append("concat_back", 0,
         [copy = part_copy(*this, index, part, first), whole = view(activation(index), dy),
          part = view(activation(part), dx)](const MicroBatchRun&) {
           const std::byte* from = bytes_in(whole);
           std::byte* to = bytes_out(part);
           copy.for_each_run([&](size_t in_part, size_t in_whole, size_t bytes) {
             copy_run(to + in_part, from + in_whole, bytes);
           });
         });
}

void CpuPlanBuilder::pad_channels(int index, int x, int y) {
  append("pad_channels", 0,
         [shape = pad_shape(*this, index), from = view(activation(node(index).input), x),
          to = view(activation(index), y)](const MicroBatchRun&) {
           const std::byte* in = bytes_in(from);
           std::byte* out = bytes_out(to);
           const size_t out_block = shape.out_lanes * shape.number;
           for_each_pixel(shape, [&](size_t wide, size_t narrow, size_t bytes) {
             if (bytes > 0) std::memcpy(out + wide, in + narrow, bytes);
             std::memset(out + wide + bytes, 0, out_block - bytes);
           });
         });
}

void CpuPlanBuilder::pad_channels_back(int index, int dy, int dx) {
  const onednn::Desc input = activation(node(index).input);
  append("pad_channels_back", 0,
         [shape = pad_shape(*this, index), bytes = input.get_size(),
          from = view(activation(index), dy), to = view(input, dx)](const MicroBatchRun&) {
           const std::byte* wide_data = bytes_in(from);
           std::byte* narrow_data = bytes_out(to);
           std::memset(narrow_data, 0, bytes);
           for_each_pixel(shape, [&](size_t wide, size_t narrow, size_t shared) {
             if (shared > 0) std::memcpy(narrow_data + narrow, wide_data + wide, shared);
           });
         });
}

}  // namespace stoker
