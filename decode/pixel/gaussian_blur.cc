// torchvision's blur. Torch convolves in two dimensions: oneDNN adds the products of a window row
// by row, from left to right, each fused with the sum so far. That takes as many times longer as
// half a kernel is wide, so here two passes of one dimension come first. Their sums differ from
// torch's by rounding errors, which have a bound. Where a sum is nearer than that to the middle
// between two bytes, which is one in hundreds, torch's sum is made as torch makes it.

// The bytes of windows are gathered with AVX-512 VBMI: see byte_table.cc.
#define HWY_WANT_AVX3_DL

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "decode/pixel/blur.h"
#include "decode/pixel/gaussian_kernel.h"
#include "decode/pixel_ops.h"

// See decode/resize/resize_kernels.cc: scalable vectors are left out.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/pixel/gaussian_blur.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "decode/resize/transpose_inl.h"

#ifndef STOKER_PIXEL_GAUSSIAN_COMMON
#define STOKER_PIXEL_GAUSSIAN_COMMON
namespace stoker {
namespace {

// Buffers are padded to a whole number of these, the values that a kernel makes at once at
// most.
constexpr size_t kGaussianStep = 64;

// The windows of torch's sums that are made at once: two groups, as each sum waits for its last
// addition.
constexpr int kWindowGroup = 16;
constexpr int kWindows = 2 * kWindowGroup;

// The taps of a window's row that are gathered before they are added.
constexpr int kTaps = 32;

// The bytes of a group of windows for one tap, then those for the next one.
using TapBytes = uint8_t[kTaps][kWindowGroup];

// A byte of the output whose sum is near the middle between two bytes.
struct NearTie {
  int y;
  int byte;  // of the row
};

struct WindowJob {
  ImageView in;
  // The byte in its row of a column's pixel, from the column that is half a kernel to the left of
  // the first one.
  const int32_t* columns;
  int kernel_x, kernel_y;
  const float* weights;  // (kernel_y, kernel_x)
};

// How far the sums of the two passes and torch's may be apart: `least`, and `growth` for each unit
// of the power of two that is not above the sum.
struct SumMargin {
  float least, growth;
};

// Two rows of the output, which are made together, as they are made from nearly the same rows of
// the horizontal pass. Output 0 is the sum of rows 0 to `taps` - 2 with weights[1] on, output 1
// that of all rows with weights[0] on.
struct DownRows {
  const float* ring;
  const int32_t* offsets;  // of the rows in the ring
  const float* weights;    // of the pass, with a zero at either end
  int taps;                // rows: one more than the pass has weights
  uint8_t* out[2];
  int32_t* near[2];  // places of sums that are near the middle between two bytes
  int found[2];      // how many there are
};

}  // namespace
}  // namespace stoker
#endif

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using GaussianTag = hn::CappedTag<float, 16>;
using Sum = hn::Vec<GaussianTag>;

void to_floats(const uint8_t* bytes, size_t count, float* out) {
  const GaussianTag d;
  const hn::RebindToSigned<GaussianTag> di;
  const hn::Rebind<uint8_t, GaussianTag> d8;
  const size_t n = hn::Lanes(d);
  size_t i = 0;
  for (; i + n <= count; i += n) {
    hn::StoreU(hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(d8, bytes + i))), d, out + i);
  }
  for (; i < count; ++i) out[i] = bytes[i];
}

// `row` begins `half` pixels before the first output. Makes four vectors at once.
void blur_across(const HalfKernel& kernel, const float* row, size_t count, float* out) {
  const GaussianTag d;
  const size_t n = hn::Lanes(d);
  const float* const middle = row + 3 * static_cast<ptrdiff_t>(kernel.half);
  const auto first = hn::Set(d, kernel.weights[0]);
  for (size_t i = 0; i < count; i += 4 * n) {
    const auto product = [&](size_t k) { return hn::Mul(first, hn::LoadU(d, middle + i + k * n)); };
    auto s0 = product(0), s1 = product(1), s2 = product(2), s3 = product(3);
    for (int t = 1; t <= kernel.half; ++t) {
      const float *a = middle + i - 3 * ptrdiff_t{t}, *b = middle + i + 3 * ptrdiff_t{t};
      const auto w = hn::Set(d, kernel.weights[t]);
      const auto both = [&](size_t k) {
        return hn::Add(hn::LoadU(d, a + k * n), hn::LoadU(d, b + k * n));
      };
      s0 = hn::MulAdd(w, both(0), s0);
      s1 = hn::MulAdd(w, both(1), s1);
      s2 = hn::MulAdd(w, both(2), s2);
      s3 = hn::MulAdd(w, both(3), s3);
    }
    hn::Store(s0, d, out + i);
    hn::Store(s1, d, out + i + n);
    hn::Store(s2, d, out + i + 2 * n);
    hn::Store(s3, d, out + i + 3 * n);
  }
}

// Rounds to the nearest bytes. Returns how far the sums are from these, and from the middle between
// two bytes so much less as their margins grow by.
HWY_INLINE Sum round_sum(Sum sum, float growth, uint8_t* out) {
  const GaussianTag d;
  const hn::RebindToUnsigned<GaussianTag> du;
  const hn::RebindToSigned<GaussianTag> di;
  const hn::Rebind<uint8_t, GaussianTag> d8;
  // A float of this size has no fraction, so the sum is rounded, and its last bits are the byte.
  const Sum whole = hn::Set(d, 0x1.8p23f);
  const Sum shifted = hn::Add(sum, whole);
  const auto nearest = hn::Sub(hn::BitCast(di, shifted), hn::BitCast(di, whole));
  hn::StoreU(hn::DemoteTo(d8, nearest), d8, out);
  const auto power_bits = hn::Set(du, 0x7f800000u);  // the exponent of a float
  const Sum power = hn::BitCast(d, hn::And(hn::BitCast(du, sum), power_bits));
  const Sum distance = hn::Abs(hn::Sub(sum, hn::Sub(shifted, whole)));
  return hn::MulAdd(hn::Set(d, growth), power, distance);
}

// Four vectors of sums, next to each other.
struct FourSums {
  Sum s0, s1, s2, s3;
};

// Rounds the sums of an output from `i` on. Adds the places of those that are within their margin
// of the middle between two bytes to its list.
HWY_INLINE void finish_sums(const FourSums& sums, SumMargin margin, size_t i, size_t count,
                            int output, DownRows& rows) {
  const GaussianTag d;
  const size_t n = hn::Lanes(d);
  uint8_t* const out = rows.out[output] + i;
  const Sum d0 = round_sum(sums.s0, margin.growth, out);
  const Sum d1 = round_sum(sums.s1, margin.growth, out + n);
  const Sum d2 = round_sum(sums.s2, margin.growth, out + 2 * n);
  const Sum d3 = round_sum(sums.s3, margin.growth, out + 3 * n);
  const Sum limit = hn::Set(d, 0.5f - margin.least);
  if (hn::AllFalse(d, hn::Ge(hn::Max(hn::Max(d0, d1), hn::Max(d2, d3)), limit))) return;
  const auto bits_of = [&](Sum distance) {
    uint8_t bytes[8] = {};
    hn::StoreMaskBits(d, hn::Ge(distance, limit), bytes);
    return uint64_t{bytes[0]} | uint64_t{bytes[1]} << 8;
  };
  uint64_t bits = bits_of(d0) | bits_of(d1) << n | bits_of(d2) << (2 * n) | bits_of(d3) << (3 * n);
  if (count - i < 4 * n) bits &= (uint64_t{1} << (count - i)) - 1;
  for (; bits != 0; bits &= bits - 1) {
    rows.near[output][rows.found[output]++] = static_cast<int32_t>(i) + std::countr_zero(bits);
  }
}

void blur_down(SumMargin margin, size_t count, DownRows& rows) {
  const GaussianTag d;
  const size_t n = hn::Lanes(d);
  for (size_t i = 0; i < count; i += 4 * n) {
    const auto zero = hn::Zero(d);
    auto a0 = zero, a1 = zero, a2 = zero, a3 = zero, b0 = zero, b1 = zero, b2 = zero, b3 = zero;
    for (int t = 0; t < rows.taps; ++t) {
      const float* const row = rows.ring + rows.offsets[t] + i;
      const auto v0 = hn::Load(d, row), v1 = hn::Load(d, row + n);
      const auto v2 = hn::Load(d, row + 2 * n), v3 = hn::Load(d, row + 3 * n);
      const auto a = hn::Set(d, rows.weights[t + 1]), b = hn::Set(d, rows.weights[t]);
      a0 = hn::MulAdd(a, v0, a0), b0 = hn::MulAdd(b, v0, b0);
      a1 = hn::MulAdd(a, v1, a1), b1 = hn::MulAdd(b, v1, b1);
      a2 = hn::MulAdd(a, v2, a2), b2 = hn::MulAdd(b, v2, b2);
      a3 = hn::MulAdd(a, v3, a3), b3 = hn::MulAdd(b, v3, b3);
    }
    finish_sums({a0, a1, a2, a3}, margin, i, count, 0, rows);
    finish_sums({b0, b1, b2, b3}, margin, i, count, 1, rows);
  }
}

// Adds the products of some taps to torch's sums, each fused with the sum so far.
void add_taps(const TapBytes* values, const float* weights, int taps, float* sums) {
#if HWY_NATIVE_FMA
  const GaussianTag d;
  const hn::RebindToSigned<GaussianTag> di;
  const hn::Rebind<uint8_t, GaussianTag> d8;
  for (size_t k = 0; k < kWindowGroup; k += hn::Lanes(d)) {
    auto s0 = hn::Load(d, sums + k), s1 = hn::Load(d, sums + kWindowGroup + k);
    for (int i = 0; i < taps; ++i) {
      const auto weight = hn::Set(d, weights[i]);
      const auto value = [&](int group) {
        return hn::ConvertTo(d, hn::PromoteTo(di, hn::Load(d8, values[group][i] + k)));
      };
      s0 = hn::MulAdd(value(0), weight, s0);
      s1 = hn::MulAdd(value(1), weight, s1);
    }
    hn::Store(s0, d, sums + k);
    hn::Store(s1, d, sums + kWindowGroup + k);
  }
#else
  for (int i = 0; i < taps; ++i) {
    for (int k = 0; k < kWindows; ++k) {
      const auto value = static_cast<float>(values[k / kWindowGroup][i][k % kWindowGroup]);
      sums[k] = std::fma(value, weights[i], sums[k]);
    }
  }
#endif
}

// A part of the row of a window: bytes of `row` at the places `columns`.
struct WindowRow {
  const uint8_t* row;
  const int32_t* columns;
};

#if HWY_ARCH_X86_64 && HWY_TARGET <= HWY_AVX3_DL

// Returns every third of 96 bytes.
HWY_INLINE __m256i third_bytes(const uint8_t* from) {
  struct Order {
    constexpr Order() {
      for (int i = 0; i < 32; ++i) bytes[i] = static_cast<uint8_t>(3 * i);
    }
    alignas(64) uint8_t bytes[64] = {};
  };
  static constexpr Order kOrder;
  const __m512i upper =
      _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 64)));
  const __m512i order = _mm512_load_si512(kOrder.bytes);
  return _mm512_castsi512_si256(_mm512_permutex2var_epi8(_mm512_loadu_si512(from), order, upper));
}

// Exchanges windows and taps: v[k] has 32 bytes of window k, then those of window k + 8.
HWY_INLINE void store_taps(__m512i* v, TapBytes& values) {
  // A vector ends with four taps of sixteen windows, whose blocks are in the order 0, 2, 1, 3.
  struct Order {
    constexpr Order() {
      for (int tap = 0; tap < 4; ++tap) {
        for (int window = 0; window < 16; ++window) {
          const int block = window / 4, place = block == 1 ? 2 : block == 2 ? 1 : block;
          bytes[16 * tap + window] = static_cast<uint8_t>(16 * place + window % 4 * 4 + tap);
        }
      }
    }
    alignas(64) uint8_t bytes[64] = {};
  };
  static constexpr Order kOrder;
  const __m512i order = _mm512_load_si512(kOrder.bytes);
  __m512i w[8];
  for (int i = 0; i < 8; i += 4) transpose_4x4(v + i, w + i);
  for (int i = 0; i < 4; ++i) {
    const __m512i lower = _mm512_shuffle_i32x4(w[i], w[i + 4], 0x88);
    const __m512i upper = _mm512_shuffle_i32x4(w[i], w[i + 4], 0xdd);
    _mm512_store_si512(values[4 * i], _mm512_permutexvar_epi8(order, lower));
    _mm512_store_si512(values[4 * (i + 4)], _mm512_permutexvar_epi8(order, upper));
  }
}

// `end`: of the image. Bytes behind the taps may be anything.
HWY_INLINE void gather_taps(const WindowRow* rows, int taps, const uint8_t* end, TapBytes& values) {
  const auto bytes_of = [&](const WindowRow& from) {
    const uint8_t* const first = from.row + from.columns[0];
    const bool is_inside = from.columns[taps - 1] == from.columns[0] + 3 * (taps - 1);
    if (is_inside && end - first >= 3 * kTaps) return third_bytes(first);
    alignas(32) uint8_t bytes[kTaps] = {};
    for (int i = 0; i < taps; ++i) bytes[i] = from.row[from.columns[i]];
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(bytes));
  };
  __m512i v[8];
  for (int k = 0; k < 8; ++k) {
    v[k] = _mm512_inserti64x4(_mm512_castsi256_si512(bytes_of(rows[k])), bytes_of(rows[k + 8]), 1);
  }
  store_taps(v, values);
}

#else

void gather_taps(const WindowRow* rows, int taps, const uint8_t*, TapBytes& values) {
  for (int k = 0; k < kWindowGroup; ++k) {
    for (int i = 0; i < taps; ++i) values[i][k] = rows[k].row[rows[k].columns[i]];
  }
}

#endif

// Makes torch's sums for some bytes of the output, all at once.
void sum_windows(const WindowJob& job, const NearTie* ties, float* sums) {
  alignas(64) TapBytes values[2];
  alignas(64) float so_far[kWindows] = {};
  WindowRow rows[kWindows];
  const ImageView in = job.in;
  const uint8_t* const end = in.data + (in.height - 1) * in.stride_bytes + 3 * ptrdiff_t{in.width};
  const float* weights = job.weights;
  for (int j = 0; j < job.kernel_y; ++j) {
    for (int k = 0; k < kWindows; ++k) {
      const int y = reflect(ties[k].y + j - job.kernel_y / 2, in.height);
      rows[k] = {in.data + y * in.stride_bytes + ties[k].byte % 3, job.columns + ties[k].byte / 3};
    }
    for (int first = 0; first < job.kernel_x; first += kTaps) {
      const int taps = std::min(kTaps, job.kernel_x - first);
      for (int group = 0; group < 2; ++group) {
        gather_taps(rows + group * kWindowGroup, taps, end, values[group]);
      }
      add_taps(values, weights + first, taps, so_far);
      for (WindowRow& row : rows) row.columns += taps;
    }
    weights += job.kernel_x;
  }
  std::copy_n(so_far, kWindows, sums);
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(to_floats);
HWY_EXPORT(blur_across);
HWY_EXPORT(blur_down);
HWY_EXPORT(sum_windows);

namespace {

size_t padded_to_steps(size_t count) {
  return (count + kGaussianStep - 1) / kGaussianStep * kGaussianStep;
}

// The most that the taps which the passes leave out add up to in a sum, per direction.
constexpr double kMaxLeftOut = 0x1p-14;

// Returns the kernel without its outermost taps, as long as these stay below kMaxLeftOut.
HalfKernel without_tail(HalfKernel kernel) {
  double left_out = 0;
  while (kernel.half > 0) {
    left_out += 2 * 255.0 * kernel.weights[kernel.half];
    if (left_out > kMaxLeftOut) break;
    --kernel.half;
  }
  return kernel;
}

// The roundings of torch's sum for a window of the brightest pixels. A fused product rounds by half
// a last place of the sum so far at most, 2 ** (power - 24), and never by more than the product.
class TorchRoundings {
 public:
  TorchRoundings(const float* weights, int taps) {
    // The sum so far is at most `reach`, a little above the products' for its own rounding.
    double reach = 0;
    for (int i = 0; i < taps; ++i) {
      const double product = 255.001 * weights[i];
      reach += product;
      if (product < 0x1p-17) {
        small_ += product;
      } else {
        ++counts_[std::clamp(power_of(static_cast<float>(reach)), 0, kMaxPower)];
      }
    }
  }

  // Returns how far a sum below 2 ** (power + 1) may be from the exact one.
  double error(int power) const {
    double error = small_;
    for (int p = 0; p <= kMaxPower; ++p) {
      error += std::ldexp(counts_[p], std::min(p, power) - 24);
    }
    return error;
  }

  static constexpr int kMaxPower = 7;  // of the sums, which are below 256

 private:
  static int power_of(float v) { return static_cast<int>(std::bit_cast<uint32_t>(v) >> 23) - 127; }

  int counts_[kMaxPower + 1] = {};  // of products that are large enough, by the sum's power
  double small_ = 0;                // the sum of the other products
};

// Returns the most by which the sums of the two passes and torch's may differ. `across` and `down`
// are the passes' kernels, `weights` the `taps` of torch's. A pass of one dimension rounds once per
// addition, and the rest of its errors, relative to the values, adds up to less than ten. Only sums
// near the middle between two bytes count, so both sums are on one side of any whole power of two.
SumMargin sum_margin(const HalfKernel& across, const HalfKernel& down, const float* weights,
                     int taps) {
  const TorchRoundings torch(weights, taps);
  const double least = torch.error(0), passes = std::ldexp(across.half + 2 * down.half + 11, -24);
  double growth = 0;
  for (int power = 1; power <= TorchRoundings::kMaxPower; ++power) {
    growth = std::max(growth, std::ldexp(torch.error(power) - least, -power));
  }
  // The passes' errors are relative to a sum, which is below twice its power of two. A sum below 1
  // has a smaller power than the error may have.
  return {static_cast<float>(least + 2 * kMaxLeftOut + 2 * passes),
          static_cast<float>(growth + 2 * passes)};
}

class GaussianBlur {
 public:
  GaussianBlur(ImageView in, int kernel_x, int kernel_y, MutableImageView out,
               PixelScratch& scratch)
      : in_(in),
        out_(out),
        kernel_x_(kernel_x),
        kernel_y_(kernel_y),
        bytes_(3 * static_cast<size_t>(in.width)) {
    const size_t across = static_cast<size_t>(kernel_x), down = static_cast<size_t>(kernel_y);
    // Everything is of four bytes but the rows of bytes at the end.
    size_t at = 0;
    const auto place = [&](size_t count) {
      const size_t first = at;
      at += padded_to_steps(count);
      return first;
    };
    const size_t ring = place((down + 1) * padded_to_steps(bytes_)),
                 line = place(padded_to_steps(bytes_) + 3 * across);
    const size_t weights_x = place(across), weights_y = place(down);
    const size_t weights = place(across * down), columns = place(in.width + across);
    const size_t taps = place(down + 2), offsets = place(down + 1);
    const size_t near = place(2 * bytes_), row = place(2 * padded_to_steps(bytes_));
    float* const room = scratch.grow<float>(at);
    auto* const numbers = reinterpret_cast<int32_t*>(room);
    ring_ = room + ring;
    line_ = room + line;
    weights_x_ = room + weights_x;
    weights_y_ = room + weights_y;
    weights_ = room + weights;
    columns_ = numbers + columns;
    taps_ = room + taps;
    offsets_ = numbers + offsets;
    near_ = numbers + near;
    rows_ = reinterpret_cast<uint8_t*>(room + row);
    // Pixels behind the line are summed, too, and thrown away.
    std::fill_n(line_, padded_to_steps(bytes_) + 3 * across, 0.0f);
  }

  void run(double sigma_x, double sigma_y) {
    across_ = make_gaussian_kernel(kernel_x_, sigma_x, weights_x_);
    down_ = make_gaussian_kernel(kernel_y_, sigma_y, weights_y_);
    float* weight = weights_;
    for (int y = -down_.half; y <= down_.half; ++y) {
      for (int x = -across_.half; x <= across_.half; ++x) {
        *weight++ = weights_y_[std::abs(y)] * weights_x_[std::abs(x)];
      }
    }
    for (int i = 0; i < in_.width + 2 * across_.half; ++i) {
      columns_[i] = 3 * reflect(i - across_.half, in_.width);
    }
    pass_across_ = without_tail(across_);
    pass_down_ = without_tail(down_);
    const SumMargin margin = sum_margin(pass_across_, pass_down_, weights_, kernel_x_ * kernel_y_);
    const int half = pass_down_.half;
    taps_[0] = taps_[2 * half + 2] = 0;
    for (int t = -half; t <= half; ++t) taps_[half + 1 + t] = weights_y_[std::abs(t)];
    for (int y = 0; y < in_.height; y += 2) make_rows(y, margin);
    settle();
  }

 private:
  float* ring_row(int y) const { return ring_ + ring_offset(y); }
  // The ring holds as many rows as two outputs are made from, so that they fit into a fast cache.
  size_t ring_offset(int y) const {
    return static_cast<size_t>(y % (2 * pass_down_.half + 2)) * padded_to_steps(bytes_);
  }

  // Makes row y, and the next one, if there is one.
  void make_rows(int y, SumMargin margin) {
    const int half = pass_down_.half, last = in_.height - 1;
    for (; blurred_ <= std::min(y + half + 1, last); ++blurred_) blur_row(blurred_);
    for (int t = 0; t < 2 * half + 2; ++t) {
      // A row after the last one is made of any rows.
      const int from = std::max(reflect(y - half + t, in_.height), 0);
      offsets_[t] = static_cast<int32_t>(ring_offset(from));
    }
    uint8_t* const second = rows_ + padded_to_steps(bytes_);
    DownRows rows{ring_, offsets_, taps_, 2 * half + 2, {rows_, second}, {near_, near_ + bytes_},
                  {0, 0}};
    HWY_DYNAMIC_DISPATCH(blur_down)(margin, bytes_, rows);
    for (int i = 0; i < std::min(2, in_.height - y); ++i) {
      std::memcpy(out_.data + (y + i) * out_.stride_bytes, rows.out[i], bytes_);
      for (int k = 0; k < rows.found[i]; ++k) {
        ties_[tie_count_++] = {y + i, rows.near[i][k]};
        if (tie_count_ == kWindows) settle();
      }
    }
  }

  // The horizontal pass of one row, with its pixels reflected at either end.
  void blur_row(int y) {
    const int half = across_.half;
    float* first = line_ + 3 * static_cast<ptrdiff_t>(half);
    HWY_DYNAMIC_DISPATCH(to_floats)(in_.data + y * in_.stride_bytes, bytes_, first);
    for (int t = 1; t <= half; ++t) {
      std::copy_n(first + columns_[half - t], 3, first - 3 * static_cast<ptrdiff_t>(t));
      const ptrdiff_t right = in_.width - 1 + t;
      std::copy_n(first + columns_[half + right], 3, first + 3 * right);
    }
    HWY_DYNAMIC_DISPATCH(blur_across)
    (pass_across_, line_ + 3 * (half - pass_across_.half), bytes_, ring_row(y));
  }

  // Makes the bytes of the list as torch makes them.
  void settle() {
    // The windows behind the list are made, too: any place will do.
    std::fill(ties_ + tie_count_, ties_ + kWindows, NearTie{0, 0});
    float sums[kWindows];
    const WindowJob job{in_, columns_, kernel_x_, kernel_y_, weights_};
    if (tie_count_ > 0) HWY_DYNAMIC_DISPATCH(sum_windows)(job, ties_, sums);
    for (int i = 0; i < tie_count_; ++i) {
      uint8_t* row = out_.data + ties_[i].y * out_.stride_bytes;
      // Halves go to the even byte.
      row[ties_[i].byte] = static_cast<uint8_t>(std::rint(sums[i]));
    }
    tie_count_ = 0;
  }

  ImageView in_;
  MutableImageView out_;
  int kernel_x_, kernel_y_;
  size_t bytes_;                            // of a row
  HalfKernel across_{}, down_{};            // torch's
  HalfKernel pass_across_{}, pass_down_{};  // those of the two passes
  // Parts of the scratch.
  float *ring_, *line_, *weights_x_, *weights_y_, *weights_, *taps_;
  int32_t *columns_, *offsets_, *near_;
  uint8_t* rows_;
  int blurred_ = 0;  // rows that the horizontal pass has made
  NearTie ties_[kWindows];
  int tie_count_ = 0;
};

}  // namespace

void gaussian_blur(ImageView in, int kernel_x, int kernel_y, double sigma_x, double sigma_y,
                   MutableImageView out, PixelScratch& scratch) {
  GaussianBlur(in, kernel_x, kernel_y, out, scratch).run(sigma_x, sigma_y);
}

}  // namespace stoker
#endif
