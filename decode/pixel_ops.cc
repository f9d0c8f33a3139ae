#include "decode/pixel_ops.h"

#include <algorithm>
#include <cstring>

// See resize_kernels.cc: scalable vectors are left out.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/pixel_ops.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#ifndef STOKER_PIXEL_OPS_COMMON
#define STOKER_PIXEL_OPS_COMMON
namespace stoker {
namespace {

// A shift as the kernels see it. Pixels are RGB (planes[0], interleaved) or planar.
struct ShiftJob {
  const uint8_t* planes[3];
  bool planar;
  ptrdiff_t stride_bytes;  // of a source row
  int offset_x, offset_y;
  bool flip;
  PadMode mode;
  MutableImageView out;
};

// Mirrors an index that is less than `size` outside; the edge is not repeated.
int reflect(int i, int size) {
  if (i < 0) return -i;
  return i < size ? i : 2 * (size - 1) - i;
}

}  // namespace
}  // namespace stoker
#endif

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void mirror_slowly(const uint8_t* from, int width, uint8_t* to) {
  from += 3 * static_cast<ptrdiff_t>(width);
  for (int x = 0; x < width; ++x, to += 3) {
    from -= 3;
    to[0] = from[0];
    to[1] = from[1];
    to[2] = from[2];
  }
}

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_RVV

void mirror(const uint8_t* from, int width, uint8_t* to) { mirror_slowly(from, width, to); }

void interleave(const uint8_t* const* planes, int width, bool mirrored, uint8_t* to) {
  for (int x = 0; x < width; ++x) {
    const int column = mirrored ? width - 1 - x : x;
    for (int c = 0; c < 3; ++c) to[3 * x + c] = planes[c][column];
  }
}

#else

using Block = hn::Full128<uint8_t>;

// Five pixels at a time, from the source's end. A step stores 16 bytes, one too many, which the
// next step overwrites; the last pixels are left to the slow loop.
void mirror(const uint8_t* from, int width, uint8_t* to) {
  const Block d;
  alignas(16) static constexpr uint8_t kReverse5[16] = {13, 14, 15, 10, 11, 12, 7, 8,
                                                        9,  4,  5,  6,  1,  2,  3, 0};
  const auto order = hn::Load(d, kReverse5);
  int left = width;
  for (; left > 5; left -= 5, to += 15) {
    const auto pixels = hn::LoadU(d, from + 3 * static_cast<ptrdiff_t>(left) - 16);
    hn::StoreU(hn::TableLookupBytes(pixels, order), d, to);
  }
  mirror_slowly(from, left, to);
}

// Sixteen pixels at a time; the last step overlaps the one before.
void interleave(const uint8_t* const* planes, int width, bool mirrored, uint8_t* to) {
  const Block d;
  alignas(16) static constexpr uint8_t kReverse[16] = {15, 14, 13, 12, 11, 10, 9, 8,
                                                       7,  6,  5,  4,  3,  2,  1, 0};
  const auto order = hn::Load(d, kReverse);
  if (width < 16) {
    for (int x = 0; x < width; ++x) {
      const int column = mirrored ? width - 1 - x : x;
      for (int c = 0; c < 3; ++c) to[3 * x + c] = planes[c][column];
    }
    return;
  }
  for (int next = 0; next < width; next += 16) {
    const int x = std::min(next, width - 16);
    const int column = mirrored ? width - 16 - x : x;
    auto r = hn::LoadU(d, planes[0] + column);
    auto g = hn::LoadU(d, planes[1] + column);
    auto b = hn::LoadU(d, planes[2] + column);
    if (mirrored) {
      r = hn::TableLookupBytes(r, order);
      g = hn::TableLookupBytes(g, order);
      b = hn::TableLookupBytes(b, order);
    }
    hn::StoreInterleaved3(r, g, b, d, to + 3 * static_cast<ptrdiff_t>(x));
  }
}

#endif

// Output columns [begin, end), before the flip, whose source lies outside the image.
void pad_columns(const ShiftJob& job, const uint8_t* const* planes, int begin, int end,
                 uint8_t* out) {
  const int width = job.out.width;
  for (int x = begin; x < end; ++x) {
    uint8_t* pixel = out + 3 * static_cast<ptrdiff_t>(job.flip ? width - 1 - x : x);
    if (job.mode == PadMode::zero) {
      std::memset(pixel, 0, 3);
      continue;
    }
    const ptrdiff_t column = reflect(x + job.offset_x, width);
    for (int c = 0; c < 3; ++c)
      pixel[c] = job.planar ? planes[c][column] : planes[0][3 * column + c];
  }
}

// One output row from source row `row` (inside the image).
void shift_row(const ShiftJob& job, int row, uint8_t* out) {
  const int width = job.out.width;
  const uint8_t* planes[3] = {};
  for (int c = 0; c < (job.planar ? 3 : 1); ++c) {
    planes[c] = job.planes[c] + row * job.stride_bytes;
  }
  // Output columns, before the flip, whose source lies inside the image.
  const int begin = std::clamp(-job.offset_x, 0, width);
  const int end = std::clamp(width - job.offset_x, begin, width);
  if (begin < end) {
    uint8_t* to = out + 3 * static_cast<ptrdiff_t>(job.flip ? width - end : begin);
    const ptrdiff_t first = begin + job.offset_x;
    if (job.planar) {
      const uint8_t* from[3] = {planes[0] + first, planes[1] + first, planes[2] + first};
      interleave(from, end - begin, job.flip, to);
    } else if (job.flip) {
      mirror(planes[0] + 3 * first, end - begin, to);
    } else {
      std::memcpy(to, planes[0] + 3 * first, 3 * static_cast<size_t>(end - begin));
    }
  }
  pad_columns(job, planes, 0, begin, out);
  pad_columns(job, planes, end, width, out);
}

void shift(const ShiftJob& job) {
  const int height = job.out.height;
  for (int y = 0; y < height; ++y) {
    uint8_t* out = job.out.data + y * job.out.stride_bytes;
    const int row = y + job.offset_y;
    const bool inside = row >= 0 && row < height;
    if (!inside && job.mode == PadMode::zero) {
      std::memset(out, 0, 3 * static_cast<size_t>(job.out.width));
    } else {
      shift_row(job, reflect(row, height), out);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(shift);
HWY_EXPORT(mirror);

void shift_flip(ImageView source, int offset_x, int offset_y, bool flip, PadMode mode,
                MutableImageView out) {
  const ShiftJob job = {{source.data, nullptr, nullptr},
                        false,
                        source.stride_bytes,
                        offset_x,
                        offset_y,
                        flip,
                        mode,
                        out};
  HWY_DYNAMIC_DISPATCH(shift)(job);
}

void shift_flip_planar(const uint8_t* planes, Size size, int offset_x, int offset_y, bool flip,
                       PadMode mode, MutableImageView out) {
  const ptrdiff_t plane = static_cast<ptrdiff_t>(size.width) * size.height;
  const ShiftJob job = {{planes, planes + plane, planes + 2 * plane},
                        true,
                        size.width,
                        offset_x,
                        offset_y,
                        flip,
                        mode,
                        out};
  HWY_DYNAMIC_DISPATCH(shift)(job);
}

void copy_mirrored(const uint8_t* source, int width, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(mirror)(source, width, out);
}

void flip_horizontal(MutableImageView image) {
  for (int y = 0; y < image.height; ++y) {
    uint8_t* left = image.data + y * image.stride_bytes;
    uint8_t* right = left + 3 * static_cast<ptrdiff_t>(image.width) - 3;
    for (; left < right; left += 3, right -= 3) std::swap_ranges(left, left + 3, right);
  }
}

void fill_box(MutableImageView image, Box box, uint8_t value) {
  const int left = std::max(box.x, 0), top = std::max(box.y, 0);
  const int right = std::min<int64_t>(int64_t{box.x} + box.width, image.width);
  const int bottom = std::min<int64_t>(int64_t{box.y} + box.height, image.height);
  if (left >= right) return;
  for (int y = top; y < bottom; ++y) {
    std::memset(image.data + y * image.stride_bytes + 3 * left, value,
                3 * static_cast<size_t>(right - left));
  }
}

}  // namespace stoker
#endif
