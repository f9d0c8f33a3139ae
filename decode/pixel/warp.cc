#include "decode/pixel/warp.h"

#include <algorithm>
#include <cmath>

#include "decode/pixel/warp_pixels.h"

// Vectors are in arrays here, and scalable ones cannot be (see decode/resize/resize_kernels.cc).
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/pixel/warp.cc"
#endif
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#ifndef STOKER_WARP_COMMON
#define STOKER_WARP_COMMON
namespace stoker {
namespace {

struct AffineMap {
  std::array<double, 6> m;
};

struct PerspectiveMap {
  std::array<double, 8> c;
};

struct WarpJob {
  ImageView in;
  Interpolation interpolation;
  Rgb fill;
  MutableImageView out;
  int first_x, first_y;
};

// Part of an output row.
struct WarpPart {
  int x, y, count;
};

// Source pixels around which no edge is near: columns [first, first + columns), and rows alike.
// Eight bytes can be read at every second pixel that is needed. Their places have 31 bits: a source
// that needs more has no such pixels.
struct InnerPart {
  int first;
  uint32_t columns, rows;
};

InnerPart inner_part(ImageView in, Interpolation interpolation) {
  const auto positive = [](int n) { return static_cast<uint32_t>(std::max(n, 0)); };
  if (in.height * static_cast<int64_t>(in.stride_bytes) > INT32_MAX) return {0, 0, 0};
  switch (interpolation) {
    case Interpolation::nearest:
      return {0, positive(in.width - 1), positive(in.height)};
    case Interpolation::bilinear:
      return {0, positive(in.width - 2), positive(in.height - 1)};
    case Interpolation::bicubic:
      return {1, positive(in.width - 4), positive(in.height - 3)};
  }
  return {};
}

}  // namespace
}  // namespace stoker
#endif

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Machines without double in vectors, and scalable vectors, compute pixel by pixel.
#undef STOKER_WARP_HAS_VECTORS
#if HWY_HAVE_FLOAT64 && HWY_TARGET != HWY_RVV && HWY_TARGET != HWY_SCALAR
#define STOKER_WARP_HAS_VECTORS 1
#else
#define STOKER_WARP_HAS_VECTORS 0
#endif

#if STOKER_WARP_HAS_VECTORS

using Doubles = hn::CappedTag<double, 8>;
using Ints = hn::Rebind<int32_t, Doubles>;
using Double = hn::Vec<Doubles>;

struct Coordinates {
  Double x, y;
};

HWY_INLINE Double splat(double value) { return hn::Set(Doubles(), value); }

// Returns (a * x + b * y) + c, in this order and without fused operations.
HWY_INLINE Double line(double a, Double x, double b, double y, double c) {
  return hn::Add(hn::Add(hn::Mul(splat(a), x), splat(b * y)), splat(c));
}

HWY_INLINE Coordinates source_of(const AffineMap& map, Double x, double y) {
  const auto& m = map.m;
  return {line(m[0], x, m[1], y, m[2]), line(m[3], x, m[4], y, m[5])};
}

HWY_INLINE Coordinates source_of(const PerspectiveMap& map, Double x, double y) {
  const auto& c = map.c;
  const Double divisor = line(c[6], x, c[7], y, 1.0);
  return {hn::Div(line(c[0], x, c[1], y, c[2]), divisor),
          hn::Div(line(c[3], x, c[4], y, c[5]), divisor)};
}

// Returns where the bytes of inner pixels are, negative numbers for others.
HWY_INLINE hn::Vec<Ints> offsets_of(ImageView in, InnerPart inner, hn::Vec<Ints> x,
                                    hn::Vec<Ints> y) {
  const Ints d;
  const hn::RebindToUnsigned<Ints> u;
  const auto first = hn::Set(d, inner.first);
  const auto is_inner =
      hn::And(hn::Lt(hn::BitCast(u, hn::Sub(x, first)), hn::Set(u, inner.columns)),
              hn::Lt(hn::BitCast(u, hn::Sub(y, first)), hn::Set(u, inner.rows)));
  const auto row = hn::Mul(y, hn::Set(d, static_cast<int32_t>(in.stride_bytes)));
  const auto offset = hn::Add(row, hn::Add(x, hn::Add(x, x)));
  return hn::IfThenElse(hn::RebindMask(d, is_inner), offset, hn::Set(d, -1));
}

// Finds the places of an output row's part.
template <bool kInterpolates, class Map>
HWY_INLINE void find_places(const Map& map, ImageView in, InnerPart inner, WarpPart part,
                            WarpPlaces& places) {
  const Doubles d;
  const Ints ints;
  const Double zero = hn::Zero(d);
  const Double width = splat(in.width), height = splat(in.height);
  const double y = part.y + 0.5;
  for (int i = 0; i < part.count; i += static_cast<int>(hn::Lanes(d))) {
    const Double x = hn::Iota(d, part.x + i + 0.5);
    auto [xx, yy] = source_of(map, x, y);
    const auto is_on = hn::And(hn::And(hn::Ge(xx, zero), hn::Lt(xx, width)),
                               hn::And(hn::Ge(yy, zero), hn::Lt(yy, height)));
    const auto is_off = hn::Or(hn::Or(hn::Lt(xx, zero), hn::Ge(xx, width)),
                               hn::Or(hn::Lt(yy, zero), hn::Ge(yy, height)));
    if constexpr (kInterpolates) {
      xx = hn::Sub(xx, splat(0.5));
      yy = hn::Sub(yy, splat(0.5));
    }
    const Double column = hn::Floor(xx), row = hn::Floor(yy);
    // Pixels without a number are as those outside where one pixel is taken, black otherwise.
    const Double elsewhere =
        kInterpolates ? hn::IfThenElse(is_off, splat(kOutside), splat(kNoNumber)) : splat(kOutside);
    const Double to_column = hn::IfThenElse(is_on, column, elsewhere);
    const auto to_x = hn::DemoteTo(ints, to_column);
    const auto to_y = hn::DemoteTo(ints, hn::IfThenElseZero(is_on, row));
    hn::Store(to_x, ints, places.x + i);
    hn::Store(to_y, ints, places.y + i);
    hn::Store(offsets_of(in, inner, to_x, to_y), ints, places.inner + i);
    if constexpr (kInterpolates) {
      hn::Store(hn::Sub(xx, column), d, places.dx + i);
      hn::Store(hn::Sub(yy, row), d, places.dy + i);
    }
  }
}

#else

struct Coordinates {
  double x, y;
};

Coordinates source_of(const AffineMap& map, double x, double y) {
  const auto& m = map.m;
  return {m[0] * x + m[1] * y + m[2], m[3] * x + m[4] * y + m[5]};
}

Coordinates source_of(const PerspectiveMap& map, double x, double y) {
  const auto& c = map.c;
  const double divisor = c[6] * x + c[7] * y + 1.0;
  return {(c[0] * x + c[1] * y + c[2]) / divisor, (c[3] * x + c[4] * y + c[5]) / divisor};
}

// A machine without vectors makes every pixel in the plain way.
template <bool kInterpolates, class Map>
void find_places(const Map& map, ImageView in, InnerPart, WarpPart part, WarpPlaces& places) {
  for (int i = 0; i < part.count; ++i) {
    places.inner[i] = -1;
    places.y[i] = 0;
    const Coordinates at = source_of(map, part.x + i + 0.5, part.y + 0.5);
    const bool is_off = at.x < 0 || at.x >= in.width || at.y < 0 || at.y >= in.height;
    if (!is_on(at.x, in.width) || !is_on(at.y, in.height)) {
      places.x[i] = is_off || !kInterpolates ? kOutside : kNoNumber;
      continue;
    }
    const double x = kInterpolates ? at.x - 0.5 : at.x, y = kInterpolates ? at.y - 0.5 : at.y;
    places.x[i] = static_cast<int32_t>(std::floor(x));
    places.y[i] = static_cast<int32_t>(std::floor(y));
    places.dx[i] = x - places.x[i];
    places.dy[i] = y - places.y[i];
  }
}

#endif

// Kernels make kPixels inner pixels of an output row from place `i` on, and write a byte behind
// them.
struct NearestKernel {
  static constexpr int kPixels = 4;
  static constexpr Interpolation kInterpolation = Interpolation::nearest;
  HWY_INLINE static void make(ImageView in, const WarpPlaces& places, int i, uint8_t* out) {
    for (int k = 0; k < kPixels; ++k) std::memcpy(out + 3 * k, in.data + places.inner[i + k], 4);
  }
};

#if STOKER_WARP_HAS_VECTORS

// The channels of one or two output pixels, four lanes each; or those of half a pixel, in two
// steps.
constexpr int kLanes = static_cast<int>(hn::MaxLanes(Doubles()));
constexpr int kPixelsAtOnce = std::max(1, kLanes / 4);
constexpr int kParts = std::max(1, 4 / kLanes);
using Words = hn::Repartition<uint64_t, Doubles>;

// A byte that is put in the lowest bits of this double is added to it. That is faster than to
// convert the byte, and the difference of two such numbers is the bytes' difference.
constexpr double kBias = 4503599627370496.0;  // 2^52

// Gives the lanes of the first and of the second output pixel their values.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> per_pixel(D d, T first, [[maybe_unused]] T second) {
  if constexpr (kPixelsAtOnce == 1) {
    return hn::Set(d, first);
  } else {
    return hn::IfThenElse(hn::FirstN(d, 4), hn::Set(d, first), hn::Set(d, second));
  }
}

// The channels of two neighbours in a source row, plus kBias.
struct Neighbours {
  Double left, right;
};

// Lanes of the low byte of each of these numbers; its other bytes become zero.
constexpr uint64_t kNoBytes = 0x8080808080808000u;
alignas(64) constexpr uint64_t kLeftBytes[8] = {kNoBytes, kNoBytes + 1, kNoBytes + 2, kNoBytes + 3,
                                                kNoBytes, kNoBytes + 1, kNoBytes + 2, kNoBytes + 3};
alignas(64) constexpr uint64_t kRightBytes[8] = {kNoBytes + 3, kNoBytes + 4, kNoBytes + 5,
                                                 kNoBytes + 6, kNoBytes + 3, kNoBytes + 4,
                                                 kNoBytes + 5, kNoBytes + 6};

// Makes lanes of the bytes of each word that `order` has.
HWY_INLINE Double biased(hn::Vec<Words> words, const uint64_t* order) {
  const hn::Repartition<uint8_t, Words> d8;
  const auto lookup = hn::BitCast(d8, hn::Load(Words(), order));
  const auto bytes = hn::TableLookupBytesOr0(hn::BitCast(d8, words), lookup);
  return hn::Or(hn::BitCast(Doubles(), bytes), splat(kBias));
}

HWY_INLINE Neighbours load(const uint8_t* const* from, ptrdiff_t offset, int part) {
  uint64_t words[kPixelsAtOnce];
  for (int k = 0; k < kPixelsAtOnce; ++k) std::memcpy(&words[k], from[k] + offset, 8);
  const auto both = per_pixel(Words(), words[0], words[kPixelsAtOnce - 1]);
  return {biased(both, kLeftBytes + part * kLanes), biased(both, kRightBytes + part * kLanes)};
}

// Cuts the fractions off, clips to bytes, and writes four of them per pixel.
HWY_INLINE void store_channels(Double v, int part, uint8_t* out) {
  const hn::Rebind<uint8_t, Doubles> d8;
  uint8_t bytes[8];
  hn::StoreU(hn::DemoteTo(d8, hn::DemoteTo(Ints(), v)), d8, bytes);
  std::memcpy(out + part * kLanes, bytes, std::min(kLanes, 4));
  if constexpr (kPixelsAtOnce == 2) std::memcpy(out + 3, bytes + 4, 4);
}

// One or two output pixels next to each other.
struct Outputs {
  HWY_INLINE Outputs(ImageView in, const WarpPlaces& places, int i) {
    constexpr int kLast = kPixelsAtOnce - 1;
    for (int k = 0; k <= kLast; ++k) from[k] = in.data + places.inner[i + k];
    dx = per_pixel(Doubles(), places.dx[i], places.dx[i + kLast]);
    dy = per_pixel(Doubles(), places.dy[i], places.dy[i + kLast]);
  }
  const uint8_t* from[kPixelsAtOnce];
  Double dx, dy;
};

struct BilinearKernel {
  static constexpr int kPixels = kPixelsAtOnce;
  static constexpr Interpolation kInterpolation = Interpolation::bilinear;

  HWY_INLINE static Double row(const Outputs& o, ptrdiff_t offset, int part) {
    const Neighbours v = load(o.from, offset, part);
    return hn::Add(hn::Sub(v.left, splat(kBias)), hn::Mul(hn::Sub(v.right, v.left), o.dx));
  }

  HWY_INLINE static void make(ImageView in, const WarpPlaces& places, int i, uint8_t* out) {
    const Outputs o(in, places, i);
    for (int part = 0; part < kParts; ++part) {
      const Double above = row(o, 0, part), below = row(o, in.stride_bytes, part);
      store_channels(hn::Add(above, hn::Mul(hn::Sub(below, above), o.dy)), part, out);
    }
  }
};

struct BicubicKernel {
  static constexpr int kPixels = kPixelsAtOnce;
  static constexpr Interpolation kInterpolation = Interpolation::bicubic;

  HWY_INLINE static Double polynomial(Double p1, Double p2, Double p3, Double p4, Double d) {
    const Double inner = hn::Add(p3, hn::Mul(d, p4));
    return hn::Add(p1, hn::Mul(d, hn::Add(p2, hn::Mul(d, inner))));
  }

  // The coefficients of a row's polynomial are integers, so the order of their sums does not show.
  HWY_INLINE static Double row(const Outputs& o, ptrdiff_t offset, int part) {
    const Neighbours a = load(o.from, offset - 3, part), b = load(o.from, offset + 3, part);
    const Double first = hn::Sub(a.left, a.right), last = hn::Sub(b.right, b.left);
    return polynomial(hn::Sub(a.right, splat(kBias)), hn::Sub(b.left, a.left),
                      hn::Sub(hn::Add(first, first), last), hn::Sub(last, first), o.dx);
  }

  // The order of these sums is Pillow's.
  HWY_INLINE static Double column(const Double* v, Double dy) {
    const Double p2 = hn::Sub(v[2], v[0]);
    const Double first = hn::Sub(v[0], v[1]);
    const Double p3 = hn::Sub(hn::Add(hn::Add(first, first), v[2]), v[3]);
    const Double p4 = hn::Add(hn::Sub(hn::Sub(v[1], v[0]), v[2]), v[3]);
    return polynomial(v[1], p2, p3, p4, dy);
  }

  HWY_INLINE static void make(ImageView in, const WarpPlaces& places, int i, uint8_t* out) {
    const Outputs o(in, places, i);
    for (int part = 0; part < kParts; ++part) {
      Double rows[4];
      for (int r = 0; r < 4; ++r) rows[r] = row(o, (r - 1) * in.stride_bytes, part);
      store_channels(column(rows, o.dy), part, out);
    }
  }
};

#else

struct BilinearKernel : NearestKernel {
  static constexpr Interpolation kInterpolation = Interpolation::bilinear;
};

struct BicubicKernel : NearestKernel {
  static constexpr Interpolation kInterpolation = Interpolation::bicubic;
};

#endif

template <class Kernel>
HWY_INLINE bool are_inner(const WarpPlaces& places, int i) {
  int32_t signs = 0;
  for (int k = 0; k < Kernel::kPixels; ++k) signs |= places.inner[i + k];
  return signs >= 0;
}

// Makes the pixels of a part. A kernel may write a fourth byte, so it makes no row's last pixel.
template <class Kernel>
HWY_INLINE void make_pixels(const WarpJob& job, const WarpPlaces& places, WarpPart part) {
  uint8_t* out = job.out.data + part.y * job.out.stride_bytes + 3 * ptrdiff_t{part.x};
  const int fast_end = std::min(part.count, job.out.width - 1 - part.x) - (Kernel::kPixels - 1);
  for (int i = 0; i < part.count;) {
    if (i < fast_end && are_inner<Kernel>(places, i)) {
      Kernel::make(job.in, places, i, out);
      i += Kernel::kPixels;
      out += 3 * Kernel::kPixels;
    } else {
      plain_pixel(job.in, places, i, Kernel::kInterpolation, job.fill, out);
      ++i;
      out += 3;
    }
  }
}

template <class Kernel, class Map>
void warp_with(const Map& map, const WarpJob& job) {
  const InnerPart inner = inner_part(job.in, Kernel::kInterpolation);
  WarpPlaces places;
  for (int y = 0; y < job.out.height; ++y) {
    for (int x = 0; x < job.out.width; x += WarpPlaces::kMax) {
      const WarpPart part{x, y, std::min(WarpPlaces::kMax, job.out.width - x)};
      constexpr bool kInterpolates = Kernel::kInterpolation != Interpolation::nearest;
      const WarpPart of_whole{job.first_x + x, job.first_y + y, part.count};
      find_places<kInterpolates>(map, job.in, inner, of_whole, places);
      make_pixels<Kernel>(job, places, part);
    }
  }
}

template <class Map>
void warp_by(const Map& map, const WarpJob& job) {
  switch (job.interpolation) {
    case Interpolation::nearest:
      return warp_with<NearestKernel>(map, job);
    case Interpolation::bilinear:
      return warp_with<BilinearKernel>(map, job);
    case Interpolation::bicubic:
      return warp_with<BicubicKernel>(map, job);
  }
}

void affine(const AffineMap& map, const WarpJob& job) { warp_by(map, job); }
void perspective(const PerspectiveMap& map, const WarpJob& job) { warp_by(map, job); }

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(affine);
HWY_EXPORT(perspective);

void warp_affine(ImageView in, const std::array<double, 6>& matrix, Interpolation interpolation,
                 Rgb fill, MutableImageView out, int first_x, int first_y) {
  if (interpolation == Interpolation::nearest) return warp_affine_nearest(in, matrix, fill, out);
  HWY_DYNAMIC_DISPATCH(affine)({matrix}, {in, interpolation, fill, out, first_x, first_y});
}

void warp_perspective(ImageView in, const std::array<double, 8>& coefficients,
                      Interpolation interpolation, Rgb fill, MutableImageView out, int first_x,
                      int first_y) {
  HWY_DYNAMIC_DISPATCH(perspective)
  ({coefficients}, {in, interpolation, fill, out, first_x, first_y});
}

}  // namespace stoker
#endif
