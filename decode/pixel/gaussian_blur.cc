// torchvision's blur. Torch convolves in two dimensions: oneDNN adds the products of a window row
// by row, from left to right, each fused with the sum so far. That takes as many times longer as
// half a kernel is wide, so here two passes of one dimension come first. Their sums differ from
// torch's by rounding errors, which have a bound. Where a sum is nearer than that to the middle
// between two bytes, which is one in hundreds, torch's sum is made as torch makes it.
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
#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/pixel/gaussian_blur.cc"
#endif
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#ifndef STOKER_PIXEL_GAUSSIAN_COMMON
#define STOKER_PIXEL_GAUSSIAN_COMMON
namespace stoker {
namespace {

// Buffers are padded to a whole number of these, the values that a kernel makes at once at
// most.
constexpr size_t kGaussianStep = 64;

// The windows of torch's sums that are made at once.
constexpr int kWindows = 16;

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

// The rows of the horizontal pass that a row of the output is made from.
struct DownRows {
  const float* ring;
  const int32_t* offsets;  // of the rows from `half` above to `half` below, in the ring
};

}  // namespace
}  // namespace stoker
#endif

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using GaussianTag = hn::CappedTag<float, 16>;

// Makes the weighted sums of four vectors from `i` on and calls out(place, sum) for each. tap(t) is
// where the values begin that are `t` away from the middle, -half <= t <= half.
template <class Tap, class Out>
HWY_INLINE void sum_taps(const HalfKernel& kernel, size_t i, const Tap& tap, const Out& out) {
  const GaussianTag d;
  const size_t n = hn::Lanes(d);
  const float* middle = tap(0) + i;
  const auto first = hn::Set(d, kernel.weights[0]);
  auto s0 = hn::Mul(first, hn::LoadU(d, middle)), s1 = hn::Mul(first, hn::LoadU(d, middle + n));
  auto s2 = hn::Mul(first, hn::LoadU(d, middle + 2 * n));
  auto s3 = hn::Mul(first, hn::LoadU(d, middle + 3 * n));
  for (int t = 1; t <= kernel.half; ++t) {
    const float *a = tap(-t) + i, *b = tap(t) + i;
    const auto w = hn::Set(d, kernel.weights[t]);
    const auto both = [&](size_t k) {
      return hn::Add(hn::LoadU(d, a + k * n), hn::LoadU(d, b + k * n));
    };
    s0 = hn::MulAdd(w, both(0), s0);
    s1 = hn::MulAdd(w, both(1), s1);
    s2 = hn::MulAdd(w, both(2), s2);
    s3 = hn::MulAdd(w, both(3), s3);
  }
  out(i, s0);
  out(i + n, s1);
  out(i + 2 * n, s2);
  out(i + 3 * n, s3);
}

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

// `row` begins `half` pixels before the first output.
void blur_across(const HalfKernel& kernel, const float* row, size_t count, float* out) {
  const GaussianTag d;
  const auto tap = [&](int t) { return row + 3 * static_cast<ptrdiff_t>(t + kernel.half); };
  const auto store = [&](size_t i, hn::Vec<GaussianTag> v) { hn::Store(v, d, out + i); };
  for (size_t i = 0; i < count; i += 4 * hn::Lanes(d)) sum_taps(kernel, i, tap, store);
}

// Rounds to the nearest byte. Returns how many sums are within their margin of the middle between
// two bytes, and sets `near` to their places.
int blur_down(const HalfKernel& kernel, const DownRows& rows, size_t count, SumMargin margin,
              uint8_t* out, int32_t* near) {
  const GaussianTag d;
  const hn::RebindToUnsigned<GaussianTag> du;
  const hn::Rebind<uint8_t, GaussianTag> d8;
  const float limit = 0.5f - margin.least;
  const auto growth = hn::Set(d, margin.growth);
  // The exponent of a float.
  const auto power_bits = hn::Set(du, 0x7f800000u);
  int found = 0;
  const auto tap = [&](int t) { return rows.ring + rows.offsets[t + kernel.half]; };
  const auto store = [&](size_t i, hn::Vec<GaussianTag> v) {
    const auto nearest = hn::NearestInt(v);
    hn::StoreU(hn::DemoteTo(d8, nearest), d8, out + i);
    const auto power = hn::BitCast(d, hn::And(hn::BitCast(du, v), power_bits));
    const auto exact = hn::Abs(hn::Sub(v, hn::ConvertTo(d, nearest)));
    const auto distance = hn::MulAdd(growth, power, exact);
    if (hn::AllFalse(d, hn::Ge(distance, hn::Set(d, limit)))) return;
    alignas(64) float distances[16];
    hn::Store(distance, d, distances);
    for (size_t lane = 0; lane < hn::Lanes(d); ++lane) {
      if (distances[lane] >= limit && i + lane < count) {
        near[found++] = static_cast<int32_t>(i + lane);
      }
    }
  };
  for (size_t i = 0; i < count; i += 4 * hn::Lanes(d)) sum_taps(kernel, i, tap, store);
  return found;
}

// Adds the products of some taps to torch's sums, each fused with the sum so far. `values` has the
// bytes of all windows for one tap after the other.
void add_taps(const uint8_t* values, const float* weights, int taps, float* sums) {
#if HWY_NATIVE_FMA
  const GaussianTag d;
  const hn::RebindToSigned<GaussianTag> di;
  const hn::Rebind<uint8_t, GaussianTag> d8;
  for (size_t k = 0; k < kWindows; k += hn::Lanes(d)) {
    auto sum = hn::Load(d, sums + k);
    for (int i = 0; i < taps; ++i) {
      const auto bytes = hn::Load(d8, values + k + size_t{kWindows} * static_cast<size_t>(i));
      const auto value = hn::ConvertTo(d, hn::PromoteTo(di, bytes));
      sum = hn::MulAdd(value, hn::Set(d, weights[i]), sum);
    }
    hn::Store(sum, d, sums + k);
  }
#else
  for (int i = 0; i < taps; ++i) {
    for (int k = 0; k < kWindows; ++k) {
      sums[k] = std::fma(static_cast<float>(values[kWindows * i + k]), weights[i], sums[k]);
    }
  }
#endif
}

// Makes torch's sums for some bytes of the output, all at once: a sum must wait for each addition.
void sum_windows(const WindowJob& job, const NearTie* ties, float* sums) {
  constexpr int kTaps = 32;  // that are gathered before they are added
  alignas(64) uint8_t values[kTaps * kWindows];
  alignas(64) float so_far[kWindows] = {};
  const float* weights = job.weights;
  for (int j = 0; j < job.kernel_y; ++j) {
    for (int first = 0; first < job.kernel_x; first += kTaps) {
      const int taps = std::min(kTaps, job.kernel_x - first);
      for (int k = 0; k < kWindows; ++k) {
        const int y = reflect(ties[k].y + j - job.kernel_y / 2, job.in.height);
        const uint8_t* row = job.in.data + y * job.in.stride_bytes + ties[k].byte % 3;
        const int32_t* columns = job.columns + ties[k].byte / 3 + first;
        for (int i = 0; i < taps; ++i) values[kWindows * i + k] = row[columns[i]];
      }
      add_taps(values, weights + first, taps, so_far);
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
  const double least = torch.error(0), passes = std::ldexp(across.half + down.half + 10, -24);
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
    // Everything is of four bytes but the row of bytes at the end.
    size_t at = 0;
    const auto place = [&](size_t count) {
      const size_t first = at;
      at += padded_to_steps(count);
      return first;
    };
    const size_t ring = place(down * padded_to_steps(bytes_)),
                 line = place(padded_to_steps(bytes_) + 3 * across);
    const size_t weights_x = place(across), weights_y = place(down);
    const size_t weights = place(across * down), columns = place(in.width + across);
    const size_t offsets = place(down), near = place(bytes_), row = place(bytes_);
    float* const room = scratch.grow<float>(at);
    auto* const numbers = reinterpret_cast<int32_t*>(room);
    ring_ = room + ring;
    line_ = room + line;
    weights_x_ = room + weights_x;
    weights_y_ = room + weights_y;
    weights_ = room + weights;
    columns_ = numbers + columns;
    offsets_ = numbers + offsets;
    near_ = numbers + near;
    row_ = reinterpret_cast<uint8_t*>(room + row);
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
    for (int y = 0; y < in_.height; ++y) make_row(y, margin);
    settle();
  }

 private:
  float* ring_row(int y) const { return ring_ + ring_offset(y); }
  // The ring holds as many rows as the pass's kernel is high, so that they fit into the first
  // cache.
  size_t ring_offset(int y) const {
    return static_cast<size_t>(y % (2 * pass_down_.half + 1)) * padded_to_steps(bytes_);
  }

  void make_row(int y, SumMargin margin) {
    const int half = pass_down_.half;
    for (; blurred_ <= std::min(y + half, in_.height - 1); ++blurred_) blur_row(blurred_);
    for (int t = -half; t <= half; ++t) {
      offsets_[t + half] = static_cast<int32_t>(ring_offset(reflect(y + t, in_.height)));
    }
    const int found =
        HWY_DYNAMIC_DISPATCH(blur_down)(pass_down_, {ring_, offsets_}, bytes_, margin, row_, near_);
    std::memcpy(out_.data + y * out_.stride_bytes, row_, bytes_);
    for (int i = 0; i < found; ++i) {
      ties_[tie_count_++] = {y, near_[i]};
      if (tie_count_ == kWindows) settle();
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
  float *ring_, *line_, *weights_x_, *weights_y_, *weights_;
  int32_t *columns_, *offsets_, *near_;
  uint8_t* row_;
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
