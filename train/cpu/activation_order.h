// Where the values of an activation lie, for the few operations that are plain loops here because
// oneDNN does not have them. A value; pure; any thread.
#pragma once

#include <bit>
#include <cstdint>

#include "train/cpu/plan_builder.h"

namespace stoker {

struct ActivationOrder {
  int rows = 0, channels = 0, height = 0, width = 0;
  bool blocked = false;  // NCHW in blocks of kBlockChannels, else NHWC

  ActivationOrder(const CpuPlanBuilder& builder, int index)
      : rows(builder.options().rows),
        channels(builder.node(index).shape.channels),
        height(builder.node(index).shape.height),
        width(builder.node(index).shape.width),
        blocked(builder.in_blocks(index)) {}

  int64_t pixels() const { return int64_t{height} * width; }
  // With those that fill the last block, which are 0.
  int stored_channels() const {
    return blocked ? (channels + kBlockChannels - 1) / kBlockChannels * kBlockChannels : channels;
  }
  int64_t row_values() const { return stored_channels() * pixels(); }
  int64_t at(int row, int channel, int y, int x) const {
    const int64_t pixel = int64_t{y} * width + x;
    if (!blocked) return row * row_values() + pixel * channels + channel;
    const int64_t block = channel / kBlockChannels;
    return row * row_values() + (block * pixels() + pixel) * kBlockChannels +
           channel % kBlockChannels;
  }
};

inline float number_at(const float* values, int64_t index) { return values[index]; }
inline float number_at(const uint16_t* bf16, int64_t index) {
  return std::bit_cast<float>(static_cast<uint32_t>(bf16[index]) << 16);
}
inline void set_number(float* values, int64_t index, float value) { values[index] = value; }
inline void set_number(uint16_t* bf16, int64_t index, float value) { bf16[index] = to_bf16(value); }

// Calls loop(from, to) with pointers to the activations' type.
template <typename Loop>
void with_numbers(Precision precision, const dnnl::memory& from, const dnnl::memory& to,
                  const Loop& loop) {
  if (precision == Precision::bf16) {
    loop(static_cast<const uint16_t*>(from.get_data_handle()),
         static_cast<uint16_t*>(to.get_data_handle()));
  } else {
    loop(static_cast<const float*>(from.get_data_handle()),
         static_cast<float*>(to.get_data_handle()));
  }
}

}  // namespace stoker
