#include <algorithm>
#include <array>
#include <cstddef>

#include "decode/pixel/byte_runs.h"
#include "decode/pixel/byte_table.h"
#include "decode/pixel/colour.h"

// See decode/resize/resize_kernels.cc: scalable vectors are left out.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/pixel/histogram.cc"
#endif
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#ifndef STOKER_PIXEL_HISTOGRAM_COMMON
#define STOKER_PIXEL_HISTOGRAM_COMMON
namespace stoker {
namespace {

struct ChannelRange {
  uint8_t least = 255, most = 0;
  void add(uint8_t value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
};

}  // namespace
}  // namespace stoker
#endif

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Extends the ranges of the three channels by a run of pixels. Three vectors hold whole pixels, so
// each byte of them always has the same channel.
void find_ranges(const uint8_t* bytes, size_t count, ChannelRange* ranges) {
  const hn::CappedTag<uint8_t, 64> d8;
  const size_t lanes = hn::Lanes(d8), step = 3 * lanes;
  alignas(64) uint8_t least[3 * 64], most[3 * 64];
  size_t i = 0;
  if (count >= step) {
    auto a0 = hn::LoadU(d8, bytes), a1 = hn::LoadU(d8, bytes + lanes);
    auto a2 = hn::LoadU(d8, bytes + 2 * lanes);
    auto b0 = a0, b1 = a1, b2 = a2;
    for (i = step; i + step <= count; i += step) {
      const auto v0 = hn::LoadU(d8, bytes + i), v1 = hn::LoadU(d8, bytes + i + lanes);
      const auto v2 = hn::LoadU(d8, bytes + i + 2 * lanes);
      a0 = hn::Min(a0, v0), a1 = hn::Min(a1, v1), a2 = hn::Min(a2, v2);
      b0 = hn::Max(b0, v0), b1 = hn::Max(b1, v1), b2 = hn::Max(b2, v2);
    }
    hn::Store(a0, d8, least), hn::Store(a1, d8, least + lanes),
        hn::Store(a2, d8, least + 2 * lanes);
    hn::Store(b0, d8, most), hn::Store(b1, d8, most + lanes), hn::Store(b2, d8, most + 2 * lanes);
    for (size_t k = 0; k < step; ++k) {
      ranges[k % 3].add(least[k]);
      ranges[k % 3].add(most[k]);
    }
  }
  for (; i < count; ++i) ranges[i % 3].add(bytes[i]);
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(find_ranges);

namespace {

using ByteCounts = std::array<uint32_t, 256>;

ByteTable identity_table() {
  ByteTable table;
  for (size_t v = 0; v < 256; ++v) table[v] = static_cast<uint8_t>(v);
  return table;
}

// Neighbouring pixels are often equal, and a count that was just stored is not read again at once:
// so every other pixel has counts of its own.
std::array<ByteCounts, 3> count_bytes(ImageView image) {
  std::array<ByteCounts, 3> even{}, odd{};
  for_each_run(image, [&](const uint8_t* bytes, size_t count) {
    size_t i = 0;
    for (; i + 6 <= count; i += 6) {
      for (size_t c = 0; c < 3; ++c) ++even[c][bytes[i + c]];
      for (size_t c = 0; c < 3; ++c) ++odd[c][bytes[i + 3 + c]];
    }
    for (size_t c = 0; i < count; ++i, ++c) ++even[c][bytes[i]];
  });
  for (size_t c = 0; c < 3; ++c) {
    for (size_t v = 0; v < 256; ++v) even[c][v] += odd[c][v];
  }
  return even;
}

// ImageOps.equalize, in its integers. Counts are below 2^32, as the pixels of an image.
ByteTable equalizing_table(const ByteCounts& counts) {
  uint64_t total = 0, last = 0;
  for (const uint32_t count : counts) {
    total += count;
    if (count != 0) last = count;
  }
  const uint64_t step = (total - last) / 255;
  if (step == 0) return identity_table();
  ByteTable table;
  uint64_t below = step / 2;
  for (size_t v = 0; v < 256; ++v) {
    table[v] = static_cast<uint8_t>(std::min<uint64_t>(below / step, 255));
    below += counts[v];
  }
  return table;
}

// ImageOps.autocontrast, in its doubles.
ByteTable stretching_table(ChannelRange range) {
  if (range.most <= range.least) return identity_table();
  const double scale = 255.0 / (range.most - range.least);
  const double offset = -range.least * scale;
  ByteTable table;
  for (int v = 0; v < 256; ++v) {
    const int stretched = static_cast<int>(v * scale + offset);
    table[static_cast<size_t>(v)] = static_cast<uint8_t>(std::clamp(stretched, 0, 255));
  }
  return table;
}

}  // namespace

void equalize(MutableImageView image) {
  const std::array<ByteCounts, 3> counts = count_bytes(image);
  apply_tables(image, {equalizing_table(counts[0]), equalizing_table(counts[1]),
                       equalizing_table(counts[2])});
}

void autocontrast(MutableImageView image) {
  std::array<ChannelRange, 3> ranges;
  for_each_run(image, [&](const uint8_t* bytes, size_t count) {
    HWY_DYNAMIC_DISPATCH(find_ranges)(bytes, count, ranges.data());
  });
  apply_tables(image, {stretching_table(ranges[0]), stretching_table(ranges[1]),
                       stretching_table(ranges[2])});
}

}  // namespace stoker
#endif
