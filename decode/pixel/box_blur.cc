// Pillow's GaussianBlur (BoxBlur.c). A box filter moves a sum along a line, one value after the
// other, so vectors take as many lines at once as they have lanes. For that the image is transposed
// for its horizontal filters, which come first, and transposed back. A strip of lines goes through
// all three filters before the next one, in the first cache.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "decode/pixel/blur.h"

// See decode/resize/resize_kernels.cc: scalable vectors are left out.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/pixel/box_blur.cc"
#endif
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#ifndef STOKER_PIXEL_BOX_COMMON
#define STOKER_PIXEL_BOX_COMMON
namespace stoker {
namespace {

// Lines that go through the filters together; matrices are padded to a multiple of it.
constexpr size_t kBoxStrip = 64;

// A box of 2 radius + 1 values of one weight, and one of a smaller weight at either end, in 24
// fractional bits.
struct BoxFilter {
  int radius;
  uint32_t weight, end_weight;
};

// The values of kBoxStrip neighbouring lines; those of one position are next to each other, and the
// next position is `step` bytes further.
struct BoxLines {
  uint8_t* first;
  ptrdiff_t step;
};

}  // namespace
}  // namespace stoker
#endif

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Filters kBoxStrip lines of `count` values. Beyond the ends, the first and last value go on.
// Pillow's sums are unsigned and of 32 bits.
void filter_lines(const BoxFilter& filter, BoxLines from, int count, BoxLines to) {
  const hn::CappedTag<uint32_t, 16> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const int64_t last = count - 1, radius = filter.radius;
  const auto weight = hn::Set(d, filter.weight), end_weight = hn::Set(d, filter.end_weight);
  const auto rounding = hn::Set(d, uint32_t{1} << 23);
  for (size_t lane = 0; lane < kBoxStrip; lane += 4 * hn::Lanes(d)) {
    const auto load = [&](int64_t at, size_t k) {
      const int64_t inside = std::clamp<int64_t>(at, 0, last);
      return hn::PromoteTo(
          d, hn::LoadU(d8, from.first + inside * from.step + lane + k * hn::Lanes(d)));
    };
    // The sum that belongs to the place before the first.
    const auto start = [&](size_t k) {
      auto sum = hn::Mul(load(0, k), hn::Set(d, static_cast<uint32_t>(radius + 1)));
      for (int64_t i = 0; i < std::min(radius, last); ++i) sum = hn::Add(sum, load(i, k));
      const auto beyond = static_cast<uint32_t>(std::max<int64_t>(radius - last, 0));
      return hn::Add(sum, hn::Mul(load(last, k), hn::Set(d, beyond)));
    };
    auto s0 = start(0), s1 = start(1), s2 = start(2), s3 = start(3);
    for (int64_t i = 0; i < count; ++i) {
      uint8_t* out = to.first + i * to.step + lane;
      const auto move = [&](auto& sum, size_t k) {
        const auto left = load(i - radius - 1, k), right = load(i + radius + 1, k);
        sum = hn::Add(sum, hn::Sub(load(i + radius, k), left));
        const auto ends = hn::Mul(hn::Add(left, right), end_weight);
        const auto all = hn::Add(hn::Add(hn::Mul(sum, weight), ends), rounding);
        const auto rounded = hn::BitCast(di, hn::ShiftRight<24>(all));
        hn::StoreU(hn::DemoteTo(d8, rounded), d8, out + k * hn::Lanes(d));
      };
      move(s0, 0);
      move(s1, 1);
      move(s2, 2);
      move(s3, 3);
    }
  }
}

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_RVV

void transpose_bytes(const uint8_t* from, size_t from_stride, size_t rows, size_t columns,
                     uint8_t* to, size_t to_stride) {
  for (size_t y = 0; y < rows; ++y) {
    for (size_t x = 0; x < columns; ++x) to[x * to_stride + y] = from[y * from_stride + x];
  }
}

#else

using Block8 = hn::Full128<uint8_t>;

// Interleaves the lanes of `a` and `b`, taken as lanes of T.
template <class T>
HWY_INLINE void interleave(hn::Vec<Block8>& a, hn::Vec<Block8>& b) {
  const hn::Full128<T> d;
  const auto x = hn::BitCast(d, a), y = hn::BitCast(d, b);
  a = hn::BitCast(Block8(), hn::InterleaveLower(d, x, y));
  b = hn::BitCast(Block8(), hn::InterleaveUpper(d, x, y));
}

// Interleaving the halves of 16 rows four times transposes them: row 2 i and 2 i + 1 of each step
// come from rows i and i + 8 of the step before.
HWY_INLINE void transpose_16x16(hn::Vec<Block8>* rows) {
  hn::Vec<Block8> next[16];
  for (int step = 0; step < 4; ++step) {
    for (int i = 0; i < 8; ++i) {
      next[2 * i] = rows[i];
      next[2 * i + 1] = rows[i + 8];
      interleave<uint8_t>(next[2 * i], next[2 * i + 1]);
    }
    for (int i = 0; i < 16; ++i) rows[i] = next[i];
  }
}

// Rows and columns are multiples of 16.
void transpose_bytes(const uint8_t* from, size_t from_stride, size_t rows, size_t columns,
                     uint8_t* to, size_t to_stride) {
  const Block8 d;
  for (size_t y = 0; y < rows; y += 16) {
    for (size_t x = 0; x < columns; x += 16) {
      hn::Vec<Block8> block[16];
      for (size_t i = 0; i < 16; ++i) block[i] = hn::Load(d, from + (y + i) * from_stride + x);
      transpose_16x16(block);
      for (size_t i = 0; i < 16; ++i) hn::Store(block[i], d, to + (x + i) * to_stride + y);
    }
  }
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(filter_lines);
HWY_EXPORT(transpose_bytes);

namespace {

size_t padded_lines(size_t count) { return (count + kBoxStrip - 1) / kBoxStrip * kBoxStrip; }

// The radius of three boxes that together have the variance of the Gaussian, as Pillow's floats.
// Numbers in brackets are equations of the paper.
float box_radius(float gaussian_radius) {
  const float variance = gaussian_radius * gaussian_radius / 3;
  // [7] The length of a box.
  const auto length = static_cast<float>(std::sqrt(12.0 * variance + 1.0));
  // [11] The whole part of its radius.
  const auto whole = static_cast<float>(std::floor((length - 1.0) / 2.0));
  // [14] The rest.
  float rest = (2 * whole + 1) * (whole * (whole + 1) - 3 * variance);
  rest /= 6 * (variance - (whole + 1) * (whole + 1));
  return whole + rest;
}

BoxFilter make_filter(float radius) {
  const int whole = static_cast<int>(radius);
  const auto weight = static_cast<uint32_t>(static_cast<float>(1 << 24) / (radius * 2 + 1));
  const uint32_t sum = static_cast<uint32_t>(2 * whole + 1) * weight;
  return {whole, weight, ((uint32_t{1} << 24) - sum) / 2};
}

// Runs the three filters over kBoxStrip lines in place. `spare` has room for them twice.
void filter_three_times(const BoxFilter& filter, BoxLines lines, int count, uint8_t* spare) {
  const BoxLines first{spare, kBoxStrip};
  const BoxLines second{spare + kBoxStrip * static_cast<size_t>(count), kBoxStrip};
  HWY_DYNAMIC_DISPATCH(filter_lines)(filter, lines, count, first);
  HWY_DYNAMIC_DISPATCH(filter_lines)(filter, first, count, second);
  HWY_DYNAMIC_DISPATCH(filter_lines)(filter, second, count, lines);
}

}  // namespace

void pillow_gaussian_blur(ImageView in, double radius, MutableImageView out,
                          PixelScratch& scratch) {
  const BoxFilter filter =
      make_filter(box_radius(static_cast<float>(std::clamp(radius, 0.0, 1e4))));
  const size_t row_bytes = 3 * static_cast<size_t>(in.width);
  const size_t height = static_cast<size_t>(in.height);
  const size_t stride = padded_lines(row_bytes), columns = padded_lines(height);
  const size_t longest = static_cast<size_t>(std::max(in.width, in.height));
  // The image, the image transposed, and two strips.
  uint8_t* const rows = scratch.grow<uint8_t>(2 * stride * columns + 2 * kBoxStrip * longest);
  uint8_t* const transposed = rows + stride * columns;
  uint8_t* const spare = transposed + stride * columns;

  for (size_t y = 0; y < height; ++y) {
    std::memcpy(rows + y * stride, in.data + static_cast<ptrdiff_t>(y) * in.stride_bytes,
                row_bytes);
  }
  HWY_DYNAMIC_DISPATCH(transpose_bytes)(rows, stride, columns, stride, transposed, columns);
  for (size_t channel = 0; channel < 3; ++channel) {
    for (size_t y = 0; y < height; y += kBoxStrip) {
      uint8_t* first = transposed + channel * columns + y;
      filter_three_times(filter, {first, static_cast<ptrdiff_t>(3 * columns)}, in.width, spare);
    }
  }
  HWY_DYNAMIC_DISPATCH(transpose_bytes)(transposed, columns, stride, columns, rows, stride);
  for (size_t i = 0; i < row_bytes; i += kBoxStrip) {
    filter_three_times(filter, {rows + i, static_cast<ptrdiff_t>(stride)}, in.height, spare);
  }
  for (size_t y = 0; y < height; ++y) {
    std::memcpy(out.data + static_cast<ptrdiff_t>(y) * out.stride_bytes, rows + y * stride,
                row_bytes);
  }
}

}  // namespace stoker
#endif
