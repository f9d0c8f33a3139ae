#include "decode/pixel_ops.h"

#include <algorithm>
#include <cstring>

// See decode/resize/resize_kernels.cc: scalable vectors are left out.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/pixel_ops.cc"
#endif
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#ifndef STOKER_PIXEL_OPS_COMMON
#define STOKER_PIXEL_OPS_COMMON
namespace stoker {
namespace {

struct ShiftJob {
  ImageView source;
  int offset_x, offset_y;
  bool flip;
  PadMode mode;
  MutableImageView out;
};

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

#else

using Block = hn::Full128<uint8_t>;

// Mirrors five pixels at a time, from the source's end. A step stores 16 bytes, one too many, which
// the next step overwrites; the scalar loop does the last pixels.
void mirror(const uint8_t* from, int width, uint8_t* to) {
  const hn::Full128<uint8_t> d;
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

#endif

// Fills output columns [begin, end), before the flip, whose source is outside the image.
template <bool kFlip>
HWY_INLINE void pad_columns(const ShiftJob& job, const uint8_t* line, int begin, int end,
                            uint8_t* out) {
  const int width = job.out.width;
  if (job.mode == PadMode::zero) {
    std::memset(out + 3 * static_cast<ptrdiff_t>(kFlip ? width - end : begin), 0,
                3 * static_cast<size_t>(end - begin));
    return;
  }
  for (int x = begin; x < end; ++x) {
    uint8_t* pixel = out + 3 * static_cast<ptrdiff_t>(kFlip ? width - 1 - x : x);
    const ptrdiff_t column = reflect(x + job.offset_x, width);
    for (int c = 0; c < 3; ++c) pixel[c] = line[3 * column + c];
  }
}

// Makes one output row from source row `row` (inside the image). Columns [begin, end), before the
// flip, have their source inside the image.
template <bool kFlip>
HWY_INLINE void shift_row(const ShiftJob& job, int row, int begin, int end, uint8_t* out) {
  const uint8_t* const line = job.source.data + row * job.source.stride_bytes;
  if (begin < end) {
    uint8_t* to = out + 3 * static_cast<ptrdiff_t>(kFlip ? job.out.width - end : begin);
    const ptrdiff_t first = begin + job.offset_x;
    if (kFlip) {
      mirror(line + 3 * first, end - begin, to);
    } else {
      std::memcpy(to, line + 3 * first, 3 * static_cast<size_t>(end - begin));
    }
  }
  if (begin > 0) pad_columns<kFlip>(job, line, 0, begin, out);
  if (end < job.out.width) pad_columns<kFlip>(job, line, end, job.out.width, out);
}

template <bool kFlip>
void shift_as(const ShiftJob& given) {
  // A local copy: the compiler then knows that stores to pixels cannot change it.
  const ShiftJob job = given;
  const int width = job.out.width, height = job.out.height;
  const int begin = std::clamp(-job.offset_x, 0, width);
  const int end = std::clamp(width - job.offset_x, begin, width);
  for (int y = 0; y < height; ++y) {
    uint8_t* out = job.out.data + y * job.out.stride_bytes;
    const int row = y + job.offset_y;
    const bool inside = row >= 0 && row < height;
    if (!inside && job.mode == PadMode::zero) {
      std::memset(out, 0, 3 * static_cast<size_t>(width));
    } else {
      shift_row<kFlip>(job, reflect(row, height), begin, end, out);
    }
  }
}

void shift(const ShiftJob& job) { job.flip ? shift_as<true>(job) : shift_as<false>(job); }

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(shift);
HWY_EXPORT(mirror);

void shift_flip(ImageView source, int offset_x, int offset_y, bool flip, PadMode mode,
                MutableImageView out) {
  HWY_DYNAMIC_DISPATCH(shift)({source, offset_x, offset_y, flip, mode, out});
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

void flip_vertical(MutableImageView image) {
  uint8_t* top = image.data;
  uint8_t* bottom = image.data + (image.height - 1) * image.stride_bytes;
  for (; top < bottom; top += image.stride_bytes, bottom -= image.stride_bytes) {
    std::swap_ranges(top, top + 3 * static_cast<ptrdiff_t>(image.width), bottom);
  }
}

namespace {

// Makes a row of a column of the source, whose pixels are `step` bytes apart.
void copy_column(const uint8_t* from, ptrdiff_t step, int count, uint8_t* to) {
  for (int i = 0; i < count; ++i, from += step, to += 3) std::memcpy(to, from, 3);
}

}  // namespace

void turn(ImageView in, int quarters, MutableImageView out) {
  for (int y = 0; y < out.height; ++y) {
    uint8_t* const to = out.data + y * out.stride_bytes;
    const ptrdiff_t last_row = (in.height - 1) * in.stride_bytes;
    if (quarters == 0) {
      std::memcpy(to, in.data + y * in.stride_bytes, 3 * static_cast<size_t>(in.width));
    } else if (quarters == 1) {
      copy_column(in.data + 3 * ptrdiff_t{in.width - 1 - y}, in.stride_bytes, in.height, to);
    } else if (quarters == 2) {
      copy_mirrored(in.data + last_row - y * in.stride_bytes, in.width, to);
    } else {
      copy_column(in.data + last_row + 3 * ptrdiff_t{y}, -in.stride_bytes, in.height, to);
    }
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
