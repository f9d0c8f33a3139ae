#include "train/collective/wire/codec.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

#include "staging/philox.h"

namespace stoker {
namespace {

// Sums and maxima over a block are taken in lanes, so that the compiler may use vectors without
// changing their order.
constexpr int64_t kCodecLanes = 16;
constexpr float kSteps = 127;          // of int8, from 0 to the largest magnitude
constexpr float kNearlyZero = 1e-30F;  // a smaller scale could not be divided by
constexpr int64_t kDrawsPerBlock = 8;  // 16 bits each, of 4 words

template <typename Add>
float over_lanes(std::span<const float> values, Add add) {
  std::array<float, kCodecLanes> lanes{};
  const auto count = static_cast<int64_t>(values.size());
  int64_t i = 0;
  for (; i + kCodecLanes <= count; i += kCodecLanes) {
    for (int64_t lane = 0; lane < kCodecLanes; ++lane) add(lanes[lane], values[i + lane]);
  }
  for (int64_t lane = 0; i < count; ++i, ++lane) add(lanes[lane], values[i]);
  float result = 0;
  for (const float lane : lanes) add(result, lane);
  return result;
}

bool block_is_finite(std::span<const float> values) {
  // A product with 0 is 0 for finite values, else NaN.
  return over_lanes(values, [](float& sum, float value) { sum += value * 0.0F; }) == 0.0F;
}

void encode_bf16(std::span<const float> values, std::byte* bytes) {
  std::array<uint16_t, kMaxBlockFloats> words;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto bits = std::bit_cast<uint32_t>(values[i]);
    const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
    const uint32_t rounded = bits + 0x7FFFU + ((bits >> 16) & 1U);
    words[i] = static_cast<uint16_t>((is_nan ? bits | 0x00400000U : rounded) >> 16);
  }
  std::memcpy(bytes, words.data(), 2 * values.size());
}

void decode_bf16(const std::byte* bytes, std::span<float> values) {
  std::array<uint16_t, kMaxBlockFloats> words;
  std::memcpy(words.data(), bytes, 2 * values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = std::bit_cast<float>(uint32_t{words[i]} << 16);
  }
}

// Draws numbers in [0, 1), multiples of 2^-16. A float from 1 to 256 holds such a multiple exactly,
// so that a value that needs no rounding is not changed.
void draw(const WireKey& key, int64_t first, std::span<float> draws) {
  const std::array<uint32_t, 2> philox_key = {static_cast<uint32_t>(key.seed),
                                              static_cast<uint32_t>(key.seed >> 32)};
  const auto step = static_cast<uint64_t>(key.step);
  const auto sender = 2 * static_cast<uint32_t>(key.sender) + (key.sum ? 1U : 0U);
  const auto counter = static_cast<uint32_t>(first / kDrawsPerBlock);
  const auto count = static_cast<int64_t>(draws.size());
  for (int64_t i = 0; i < count; i += kDrawsPerBlock) {
    const auto words = philox4x32({static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32),
                                   sender, counter + static_cast<uint32_t>(i / kDrawsPerBlock)},
                                  philox_key);
    for (int64_t j = 0; j < std::min(kDrawsPerBlock, count - i); ++j) {
      const uint32_t word = words[static_cast<size_t>(j / 2)];
      draws[i + j] = static_cast<float>(j % 2 == 0 ? word & 0xFFFFU : word >> 16) * 0x1p-16F;
    }
  }
}

void encode_int8(const WireKey& key, int64_t first, std::span<const float> values,
                 std::byte* bytes) {
  const bool finite = block_is_finite(values);
  const float largest =
      over_lanes(values, [](float& most, float value) { most = std::max(most, std::fabs(value)); });
  float scale = largest < kNearlyZero ? 0 : largest / kSteps;
  if (!finite) scale = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(bytes, &scale, sizeof scale);
  if (!finite || scale == 0) {
    std::memset(bytes + sizeof scale, 0, values.size());
    return;
  }
  std::array<float, kMaxBlockFloats> up;
  draw(key, first, std::span(up).first(values.size()));
  std::array<int8_t, kMaxBlockFloats> steps;
  const float inverse = kSteps / largest;
  for (size_t i = 0; i < values.size(); ++i) {
    // From 1 to 256: the conversion rounds down.
    const int step = static_cast<int>(values[i] * inverse + 128.0F + up[i]);
    steps[i] = static_cast<int8_t>(std::min(step, 255) - 128);
  }
  std::memcpy(bytes + sizeof scale, steps.data(), values.size());
}

void decode_int8(const std::byte* bytes, std::span<float> values) {
  float scale = 0;
  std::memcpy(&scale, bytes, sizeof scale);
  std::array<int8_t, kMaxBlockFloats> steps;
  std::memcpy(steps.data(), bytes + sizeof scale, values.size());
  for (size_t i = 0; i < values.size(); ++i) values[i] = scale * static_cast<float>(steps[i]);
}

void encode_one_bit(std::span<const float> values, std::byte* bytes) {
  const auto count = static_cast<int64_t>(values.size());
  std::array<float, 2> means{};
  int64_t at_least_zero = 0;
  for (const float value : values) at_least_zero += value >= 0;
  const float high =
      over_lanes(values, [](float& sum, float value) { sum += value >= 0 ? value : 0; });
  const float low =
      over_lanes(values, [](float& sum, float value) { sum += value >= 0 ? 0 : value; });
  if (at_least_zero > 0) means[1] = high / static_cast<float>(at_least_zero);
  if (at_least_zero < count) means[0] = low / static_cast<float>(count - at_least_zero);
  if (!block_is_finite(values)) means.fill(std::numeric_limits<float>::quiet_NaN());
  std::memcpy(bytes, means.data(), sizeof means);
  std::byte* bits = bytes + sizeof means;
  for (int64_t i = 0; i < count; i += 8) {
    unsigned byte = 0;
    for (int64_t bit = 0; bit < std::min<int64_t>(8, count - i); ++bit) {
      byte |= static_cast<unsigned>(values[i + bit] >= 0) << bit;
    }
    *bits++ = static_cast<std::byte>(byte);
  }
}

void decode_one_bit(const std::byte* bytes, std::span<float> values) {
  std::array<float, 2> means;
  std::memcpy(means.data(), bytes, sizeof means);
  const std::byte* bits = bytes + sizeof means;
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = means[(static_cast<unsigned>(bits[i / 8]) >> (i % 8)) & 1U];
  }
}

}  // namespace

void encode_block(GradWire wire, const WireKey& key, int64_t first, std::span<const float> values,
                  std::byte* bytes) {
  switch (wire) {
    case GradWire::fp32:
      std::memcpy(bytes, values.data(), values.size_bytes());
      break;
    case GradWire::bf16:
      encode_bf16(values, bytes);
      break;
    case GradWire::int8:
      encode_int8(key, first, values, bytes);
      break;
    case GradWire::one_bit:
      encode_one_bit(values, bytes);
      break;
  }
}

void decode_block(GradWire wire, const std::byte* bytes, std::span<float> values) {
  switch (wire) {
    case GradWire::fp32:
      std::memcpy(values.data(), bytes, values.size_bytes());
      break;
    case GradWire::bf16:
      decode_bf16(bytes, values);
      break;
    case GradWire::int8:
      decode_int8(bytes, values);
      break;
    case GradWire::one_bit:
      decode_one_bit(bytes, values);
      break;
  }
}

namespace {

int64_t wire_blocks(GradWire wire, int64_t floats) {
  return (floats + block_floats(wire) - 1) / block_floats(wire);
}

}  // namespace

WireLayout::WireLayout(GradWire wire, int64_t gradients, int64_t floats)
    : wire_(wire),
      gradients_(gradients),
      floats_(floats),
      gradient_blocks_(wire_blocks(wire, gradients)),
      rest_blocks_(wire_blocks(GradWire::fp32, floats - gradients)) {
  if (gradients < 0 || gradients > floats) {
    throw std::invalid_argument("gradients on the wire: " + std::to_string(gradients) + " of " +
                                std::to_string(floats) + " floats");
  }
}

WireLayout::Block WireLayout::block(int64_t index) const {
  const bool gradient = index < gradient_blocks_;
  const GradWire wire = gradient ? wire_ : GradWire::fp32;
  const int64_t size = block_floats(wire);
  const int64_t begin = gradient ? index * size : gradients_ + (index - gradient_blocks_) * size;
  return {{begin, std::min(begin + size, gradient ? gradients_ : floats_)}, wire};
}

int64_t WireLayout::byte_of(int64_t block) const {
  const int64_t size = block_floats(wire_);
  if (block < gradient_blocks_) return block * block_bytes(wire_, size);
  int64_t bytes = 0;
  if (gradient_blocks_ > 0) {
    bytes = (gradient_blocks_ - 1) * block_bytes(wire_, size) +
            block_bytes(wire_, gradients_ - (gradient_blocks_ - 1) * size);
  }
  const int64_t rest = (block - gradient_blocks_) * block_floats(GradWire::fp32);
  return bytes + block_bytes(GradWire::fp32, std::min(rest, floats_ - gradients_));
}

}  // namespace stoker
