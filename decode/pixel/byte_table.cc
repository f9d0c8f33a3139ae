// AVX-512 VBMI looks a byte up in 128 others with one instruction; Highway calls the set of
// instructions that contains it AVX3_DL and leaves it out unless it is asked for.
#define HWY_WANT_AVX3_DL

#include "decode/pixel/byte_table.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "decode/pixel/blend.h"
#include "decode/pixel/byte_runs.h"

// See decode/resize/resize_kernels.cc: scalable vectors are left out.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/pixel/byte_table.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "decode/pixel/byte_table_inl.h"

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

void map_byte_run(const ByteTable& table, uint8_t* bytes, size_t count) {
  map_bytes(table, bytes, count);
}

void map_pixels_plainly(const std::array<ByteTable, 3>& tables, uint8_t* bytes, size_t count) {
  for (size_t i = 0; i < count; i += 3) {
    for (size_t c = 0; c < 3; ++c) bytes[i + c] = tables[c][bytes[i + c]];
  }
}

#if HWY_TARGET == HWY_AVX3_DL

// The lanes whose number is a multiple of three, one more, and two more.
constexpr __mmask64 kThirds[3] = {0x9249249249249249, 0x2492492492492492, 0x4924924924924924};

void map_pixels(const std::array<ByteTable, 3>& given, uint8_t* bytes, size_t count) {
  const VectorTable red(given[0]), green(given[1]), blue(given[2]);
  // In the vector at byte `i` of a pixel the first lane is channel `phase`.
  const auto mapped = [&](__m512i v, int phase) {
    const __m512i two = _mm512_mask_blend_epi8(kThirds[(4 - phase) % 3], red(v), green(v));
    return _mm512_mask_blend_epi8(kThirds[(5 - phase) % 3], two, blue(v));
  };
  size_t i = 0;
  for (; i + 3 * kLanes <= count; i += 3 * kLanes) {
    for (int k = 0; k < 3; ++k) {
      uint8_t* at = bytes + i + kLanes * static_cast<size_t>(k);
      // 64 is one more than a multiple of three.
      _mm512_storeu_si512(at, mapped(_mm512_loadu_si512(at), k));
    }
  }
  map_pixels_plainly(given, bytes + i, count - i);
}

#else

void map_pixels(const std::array<ByteTable, 3>& tables, uint8_t* bytes, size_t count) {
  map_pixels_plainly(tables, bytes, count);
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(map_byte_run);
HWY_EXPORT(map_pixels);

namespace {

template <class Op>
ByteTable table_of(const Op& op) {
  ByteTable table;
  for (int v = 0; v < 256; ++v) table[static_cast<size_t>(v)] = static_cast<uint8_t>(op(v));
  return table;
}

}  // namespace

ByteTable blend_table(int degenerate, double factor) {
  const float f = blend_factor(factor);
  return table_of([&](int v) { return blended(degenerate, v, f); });
}

ByteTable brightness_table(double factor) { return blend_table(0, factor); }

ByteTable invert_table() {
  return table_of([](int v) { return 255 - v; });
}

ByteTable posterize_table(int bits) {
  const int mask = 0xff << (8 - std::clamp(bits, 0, 8));
  return table_of([&](int v) { return v & mask; });
}

ByteTable solarize_table(double threshold) {
  return table_of([&](int v) { return v < threshold ? v : 255 - v; });
}

ByteTable gamma_table(double gamma) {
  return table_of([&](int v) {
    // The factor is written as torchvision writes it: its last bit counts.
    const double mapped = (255 + 1 - 1e-3) * std::pow(v / 255.0, gamma);
    return static_cast<int>(std::clamp(mapped, 0.0, 255.0));
  });
}

ByteTable composed(const ByteTable& first, const ByteTable& second) {
  return table_of([&](int v) { return second[first[static_cast<size_t>(v)]]; });
}

void apply_table(MutableImageView image, const ByteTable& table) {
  for_each_run(image, [&](uint8_t* bytes, size_t count) {
    HWY_DYNAMIC_DISPATCH(map_byte_run)(table, bytes, count);
  });
}

void apply_tables(MutableImageView image, const std::array<ByteTable, 3>& tables) {
  for_each_run(image, [&](uint8_t* bytes, size_t count) {
    HWY_DYNAMIC_DISPATCH(map_pixels)(tables, bytes, count);
  });
}

}  // namespace stoker
#endif
