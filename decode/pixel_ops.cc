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

template <bool kMirrored>
void interleave_slowly(const uint8_t* const* planes, int width, uint8_t* to) {
  for (int x = 0; x < width; ++x, to += 3) {
    const int column = kMirrored ? width - 1 - x : x;
    for (int c = 0; c < 3; ++c) to[c] = planes[c][column];
  }
}

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_RVV

void mirror(const uint8_t* from, int width, uint8_t* to) { mirror_slowly(from, width, to); }

template <bool kMirrored>
void interleave(const uint8_t* const* planes, int width, uint8_t* to) {
  interleave_slowly<kMirrored>(planes, width, to);
}

template <bool kMirrored>
void interleave_masked(const uint8_t* const* planes, const uint8_t* mask, int width, uint8_t* to) {
  for (int x = 0; x < width; ++x, to += 3) {
    const int column = kMirrored ? width - 1 - x : x;
    for (int c = 0; c < 3; ++c) to[c] = planes[c][column] & mask[column];
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

// Groups of four pixels, of which each is stored with four bytes too many, which the next one
// overwrites. p[i] has the i-th group of every 128-bit block.
template <bool kMirrored, class D, class V>
HWY_INLINE void store_pixels(D d, const V* p, uint8_t* to) {
  if constexpr (hn::MaxLanes(D()) > 16) {
    const hn::Half<D> half;
    hn::Vec<hn::Half<D> > lower[4], upper[4];
    for (int i = 0; i < 4; ++i) {
      lower[i] = hn::LowerHalf(half, p[i]);
      upper[i] = hn::UpperHalf(half, p[i]);
    }
    store_pixels<kMirrored>(half, kMirrored ? upper : lower, to);
    store_pixels<kMirrored>(half, kMirrored ? lower : upper, to + 3 * hn::MaxLanes(half));
  } else {
    const auto last = p[kMirrored ? 0 : 3];
    hn::StoreU(p[kMirrored ? 3 : 0], d, to);
    hn::StoreU(p[kMirrored ? 2 : 1], d, to + 12);
    hn::StoreU(p[kMirrored ? 1 : 2], d, to + 24);
    const hn::Half<D> half;
    hn::StoreU(hn::LowerHalf(half, last), half, to + 36);
    const hn::Full64<uint32_t> end;
    const uint32_t last_bytes = hn::GetLane(hn::BitCast(end, hn::UpperHalf(half, last)));
    std::memcpy(to + 44, &last_bytes, 4);
  }
}

// As many pixels of three planes as `d` has lanes -> RGB; with a mask, black where it is 0.
template <bool kMirrored, bool kMasked, class D>
HWY_INLINE void interleave_lanes(D d, const uint8_t* const* planes, ptrdiff_t column,
                                 const uint8_t* mask, uint8_t* to) {
  const hn::Repartition<uint16_t, D> d16;
  alignas(16) static constexpr uint8_t kForward[16] = {0,  1,  2,  4,  5,    6,    8,    9,
                                                       10, 12, 13, 14, 0x80, 0x80, 0x80, 0x80};
  alignas(16) static constexpr uint8_t kBackward[16] = {12, 13, 14, 8, 9,    10,   4,    5,
                                                        6,  0,  1,  2, 0x80, 0x80, 0x80, 0x80};
  const auto order = hn::LoadDup128(d, kMirrored ? kBackward : kForward);
  const auto load = [&](int c) HWY_ATTR {
    const auto samples = hn::LoadU(d, planes[c] + column);
    return kMasked ? hn::And(samples, hn::LoadU(d, mask + column)) : samples;
  };
  const auto red = load(0), green = load(1), blue = load(2);
  const auto zero = hn::Zero(d);
  const auto rg0 = hn::BitCast(d16, hn::InterleaveLower(d, red, green));
  const auto rg1 = hn::BitCast(d16, hn::InterleaveUpper(d, red, green));
  const auto b0 = hn::BitCast(d16, hn::InterleaveLower(d, blue, zero));
  const auto b1 = hn::BitCast(d16, hn::InterleaveUpper(d, blue, zero));
  const auto squeeze = [&](auto four) HWY_ATTR {
    return hn::TableLookupBytesOr0(hn::BitCast(d, four), order);
  };
  const hn::Vec<D> p[4] = {
      squeeze(hn::InterleaveLower(d16, rg0, b0)), squeeze(hn::InterleaveUpper(d16, rg0, b0)),
      squeeze(hn::InterleaveLower(d16, rg1, b1)), squeeze(hn::InterleaveUpper(d16, rg1, b1))};
  store_pixels<kMirrored>(d, p, to);
}

// REQUIRES: width >= lanes of `d`. The last step overlaps the one before.
template <bool kMirrored, bool kMasked, class D>
HWY_INLINE void interleave_in_steps(D d, const uint8_t* const* planes, const uint8_t* mask,
                                    int width, uint8_t* to) {
  const int lanes = static_cast<int>(hn::Lanes(d));
  for (int next = 0; next < width; next += lanes) {
    const int x = std::min(next, width - lanes);
    interleave_lanes<kMirrored, kMasked>(d, planes, kMirrored ? width - lanes - x : x, mask,
                                         to + 3 * static_cast<ptrdiff_t>(x));
  }
}

template <bool kMirrored>
HWY_INLINE void interleave(const uint8_t* const* planes, int width, uint8_t* to) {
  if (width < 16) {
    interleave_slowly<kMirrored>(planes, width, to);
  } else {
    interleave_in_steps<kMirrored, false>(Block(), planes, nullptr, width, to);
  }
}

template <bool kMirrored>
HWY_INLINE void interleave_masked(const uint8_t* const* planes, const uint8_t* mask, int width,
                                  uint8_t* to) {
  const hn::CappedTag<uint8_t, 32> wide;
  if (width >= static_cast<int>(hn::Lanes(wide))) {
    interleave_in_steps<kMirrored, true>(wide, planes, mask, width, to);
  } else {
    interleave_in_steps<kMirrored, true>(Block(), planes, mask, width, to);
  }
}

#endif

// Output columns [begin, end), before the flip, whose source lies outside the image.
template <bool kPlanar, bool kFlip>
HWY_INLINE void pad_columns(const ShiftJob& job, const uint8_t* const* planes, int begin, int end,
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
    for (int c = 0; c < 3; ++c) {
      pixel[c] = kPlanar ? planes[c][column] : planes[0][3 * column + c];
    }
  }
}

// One output row from source row `row` (inside the image). Columns [begin, end), before the flip,
// have their source inside the image.
template <bool kPlanar, bool kFlip>
HWY_INLINE void shift_row(const ShiftJob& job, int row, int begin, int end, uint8_t* out) {
  const ptrdiff_t offset = row * job.stride_bytes;
  const uint8_t* const planes[3] = {job.planes[0] + offset, job.planes[1] + offset,
                                    job.planes[2] + offset};
  if (begin < end) {
    uint8_t* to = out + 3 * static_cast<ptrdiff_t>(kFlip ? job.out.width - end : begin);
    const ptrdiff_t first = begin + job.offset_x;
    if (kPlanar) {
      const uint8_t* const inside[3] = {planes[0] + first, planes[1] + first, planes[2] + first};
      interleave<kFlip>(inside, end - begin, to);
    } else if (kFlip) {
      mirror(planes[0] + 3 * first, end - begin, to);
    } else {
      std::memcpy(to, planes[0] + 3 * first, 3 * static_cast<size_t>(end - begin));
    }
  }
  if (begin > 0) pad_columns<kPlanar, kFlip>(job, planes, 0, begin, out);
  if (end < job.out.width) pad_columns<kPlanar, kFlip>(job, planes, end, job.out.width, out);
}

// Planar rows with black padding are made in one go: what lies beside the row in memory is read,
// too, and masked out. Rows at the plane's ends, where that would lie outside, are made in pieces.
struct MaskedRows {
  static constexpr int kMostColumns = 256;
  int begin = 0, end = 0;  // rows of the source that can be made so
  uint8_t mask[kMostColumns];

  MaskedRows(const ShiftJob& job, int first_column, int end_column) {
    const int width = job.out.width;
    if (!job.planar || job.mode != PadMode::zero || width < 16 || width > kMostColumns) return;
    begin = job.offset_x < 0 ? 1 : 0;
    end = job.out.height - (job.offset_x > 0 ? 1 : 0);
    if (first_column == end_column) end = 0;  // offsets may be longer than a row
    std::memset(mask, 0, static_cast<size_t>(width));
    std::memset(mask + first_column, 0xFF, static_cast<size_t>(end_column - first_column));
  }
};

template <bool kPlanar, bool kFlip>
void shift_as(const ShiftJob& given) {
  const ShiftJob job = given;  // ours alone: stores to pixels cannot change it
  const int width = job.out.width, height = job.out.height;
  const int begin = std::clamp(-job.offset_x, 0, width);
  const int end = std::clamp(width - job.offset_x, begin, width);
  const MaskedRows masked(job, begin, end);
  for (int y = 0; y < height; ++y) {
    uint8_t* out = job.out.data + y * job.out.stride_bytes;
    const int row = y + job.offset_y;
    const bool inside = row >= 0 && row < height;
    if (!inside && job.mode == PadMode::zero) {
      std::memset(out, 0, 3 * static_cast<size_t>(width));
    } else if (kPlanar && row >= masked.begin && row < masked.end) {
      const ptrdiff_t first = row * job.stride_bytes + job.offset_x;
      const uint8_t* const planes[3] = {job.planes[0] + first, job.planes[1] + first,
                                        job.planes[2] + first};
      interleave_masked<kFlip>(planes, masked.mask, width, out);
    } else {
      shift_row<kPlanar, kFlip>(job, reflect(row, height), begin, end, out);
    }
  }
}

void shift(const ShiftJob& job) {
  if (job.planar) {
    job.flip ? shift_as<true, true>(job) : shift_as<true, false>(job);
  } else {
    job.flip ? shift_as<false, true>(job) : shift_as<false, false>(job);
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
