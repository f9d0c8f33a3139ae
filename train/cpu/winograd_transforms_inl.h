// The transforms of winograd.cc, for one instruction set; included once for each, after highway.h.
// The matrices are those of Lavin and Gray 2016, section 4.3, for the points 0, 1, -1, 2, -2.

// The guard is per target: Highway toggles HWY_TARGET_TOGGLE from one inclusion to the next.
#if defined(STOKER_TRAIN_WINOGRAD_TRANSFORMS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef STOKER_TRAIN_WINOGRAD_TRANSFORMS_INL_H
#undef STOKER_TRAIN_WINOGRAD_TRANSFORMS_INL_H
#else
#define STOKER_TRAIN_WINOGRAD_TRANSFORMS_INL_H
#endif

#include <algorithm>

#include "train/cpu/activation_values_inl.h"

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::CappedTag<float, 16>;
using Vector = hn::Vec<Tag>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(Tag()));

HWY_INLINE Vector times(float factor, Vector v) { return hn::Mul(hn::Set(Tag(), factor), v); }
// sum + factor * v
HWY_INLINE Vector plus(Vector sum, float factor, Vector v) {
  return hn::MulAdd(hn::Set(Tag(), factor), v, sum);
}

// B^T, of a tile of the input.
struct InputTransform {
  static constexpr int kFrom = 6, kTo = 6;
  static HWY_INLINE void apply(const Vector (&in)[6], Vector (&out)[6]) {
    const Vector a = plus(in[4], -4, in[2]), b = plus(in[3], -4, in[1]);
    const Vector c = hn::Sub(in[4], in[2]), e = hn::Sub(in[3], in[1]);
    out[0] = plus(plus(in[4], -5, in[2]), 4, in[0]);
    out[1] = hn::Add(a, b);
    out[2] = hn::Sub(a, b);
    out[3] = plus(c, 2, e);
    out[4] = plus(c, -2, e);
    out[5] = plus(plus(in[5], -5, in[3]), 4, in[1]);
  }
};

// A^T, to a tile of the output.
struct OutputTransform {
  static constexpr int kFrom = 6, kTo = 4;
  static HWY_INLINE void apply(const Vector (&in)[6], Vector (&out)[4]) {
    const Vector a = hn::Add(in[1], in[2]), b = hn::Sub(in[1], in[2]);
    const Vector c = hn::Add(in[3], in[4]), e = hn::Sub(in[3], in[4]);
    out[0] = hn::Add(hn::Add(in[0], a), c);
    out[1] = plus(b, 2, e);
    out[2] = plus(a, 4, c);
    out[3] = hn::Add(plus(b, 8, e), in[5]);
  }
};

// A, of a tile of the output's gradient.
struct OutputGradientTransform {
  static constexpr int kFrom = 4, kTo = 6;
  static HWY_INLINE void apply(const Vector (&in)[4], Vector (&out)[6]) {
    const Vector a = hn::Add(in[0], in[2]), b = hn::Add(in[1], in[3]);
    const Vector c = plus(in[0], 4, in[2]), e = plus(in[1], 4, in[3]);
    out[0] = in[0];
    out[1] = hn::Add(a, b);
    out[2] = hn::Sub(a, b);
    out[3] = plus(c, 2, e);
    out[4] = plus(c, -2, e);
    out[5] = in[3];
  }
};

// G, of the weights.
struct WeightTransform {
  static constexpr int kFrom = 3, kTo = 6;
  static HWY_INLINE void apply(const Vector (&in)[3], Vector (&out)[6]) {
    const Vector a = times(-1.0f / 6, hn::Add(in[0], in[2])), b = times(-1.0f / 6, in[1]);
    const Vector c = plus(times(1.0f / 24, in[0]), 1.0f / 6, in[2]), e = times(1.0f / 12, in[1]);
    out[0] = times(0.25f, in[0]);
    out[1] = hn::Add(a, b);
    out[2] = hn::Sub(a, b);
    out[3] = hn::Add(c, e);
    out[4] = hn::Sub(c, e);
    out[5] = in[2];
  }
};

// G^T, to the weights' gradient.
struct WeightGradientTransform {
  static constexpr int kFrom = 6, kTo = 3;
  static HWY_INLINE void apply(const Vector (&in)[6], Vector (&out)[3]) {
    const Vector a = hn::Add(in[1], in[2]), b = hn::Sub(in[2], in[1]);
    const Vector c = hn::Add(in[3], in[4]), e = hn::Sub(in[3], in[4]);
    out[0] = plus(plus(times(0.25f, in[0]), -1.0f / 6, a), 1.0f / 24, c);
    out[1] = plus(times(1.0f / 6, b), 1.0f / 12, e);
    out[2] = plus(plus(in[5], -1.0f / 6, a), 1.0f / 6, c);
  }
};

// Transforms the columns of a square of vectors, and then the rows of what that gives.
template <class Transform, class Load, class Store>
HWY_INLINE void transform_square(const Load& load, const Store& store) {
  constexpr int kFrom = Transform::kFrom, kTo = Transform::kTo;
  HWY_ALIGN float between[kTo][kFrom][kLanes];
  const Tag d;
  Vector from[kFrom], to[kTo];
  for (int x = 0; x < kFrom; ++x) {
    for (int y = 0; y < kFrom; ++y) from[y] = load(y, x);
    Transform::apply(from, to);
    for (int y = 0; y < kTo; ++y) hn::Store(to[y], d, between[y][x]);
  }
  for (int y = 0; y < kTo; ++y) {
    for (int x = 0; x < kFrom; ++x) from[x] = hn::Load(d, between[y][x]);
    Transform::apply(from, to);
    for (int x = 0; x < kTo; ++x) store(y, x, to[x]);
  }
}

// The first `count` of a vector's values, and zeros.
template <class Number>
HWY_INLINE Vector load_first(int count, const Number* from) {
  if (count >= kLanes) return load(Tag(), from);
  return count <= 0 ? hn::Zero(Tag()) : load_some(Tag(), count, from);
}

template <class Number>
HWY_INLINE void store_first(int count, Vector v, Number* to) {
  if (count >= kLanes) return store(Tag(), v, to);
  if (count > 0) store_some(Tag(), count, v, to);
}

// Calls per_vector(panel, lane, count) for each vector of the panels that hold `channels` channels;
// `count` of its lanes, maybe none, are channels.
template <class PerVector>
HWY_INLINE void for_vectors(int channels, const PerVector& per_vector) {
  for (int panel = 0; panel * 16 < channels; ++panel) {
    for (int lane = 0; lane < 16; lane += kLanes) {
      per_vector(panel, lane, channels - panel * 16 - lane);
    }
  }
}

// Transforms the tiles [first, first + count) of activations into `to`. What is outside of the
// picture is zero.
template <class Transform, class Number>
void transform_tiles(const ActivationView<Number>& from, const WinogradTiles& tiles, int first,
                     int count, int origin, const WinogradMatrices& to) {
  for (int t = 0; t < count; ++t) {
    const WinogradTile tile = tiles.at(first + t, origin);
    const Number* corner = from.at(tile);
    for_vectors(from.stored_channels(), [&](int panel, int lane, int channels) {
      const Number* at = corner + panel * from.panel_step + lane;
      float* out = to.data + panel * to.panel_step + t * 16 + lane;
      transform_square<Transform>(
          [&](int y, int x) {
            return from.contains(tile, y, x)
                       ? load_first(channels, at + y * from.line_step + x * from.pixel_step)
                       : hn::Zero(Tag());
          },
          [&](int y, int x, Vector v) { hn::Store(v, Tag(), out + (y * 6 + x) * to.matrix_step); });
    });
  }
}

template <class Number>
void transform_outputs(const WinogradMatrices& from, const WinogradTiles& tiles, int first,
                       int count, const float* bias, bool relu, const ActivationView<Number>& to) {
  const Tag d;
  for (int t = 0; t < count; ++t) {
    const WinogradTile tile = tiles.at(first + t, 0);
    Number* corner = to.at(tile);
    for_vectors(to.stored_channels(), [&](int panel, int lane, int channels) {
      const float* in = from.data + panel * from.panel_step + t * 16 + lane;
      Number* at = corner + panel * to.panel_step + lane;
      const int biased = to.channels - panel * 16 - lane;
      const Vector shift =
          bias == nullptr ? hn::Zero(d) : load_first(biased, bias + panel * 16 + lane);
      transform_square<OutputTransform>(
          [&](int y, int x) { return hn::Load(d, in + (y * 6 + x) * from.matrix_step); },
          [&](int y, int x, Vector v) {
            if (!to.contains(tile, y, x)) return;
            v = hn::Add(v, shift);
            if (relu) v = hn::Max(v, hn::Zero(d));
            store_first(channels, v, at + y * to.line_step + x * to.pixel_step);
          });
    });
  }
}

// Transforms one vector of weights; `load` gets the place of a weight in its kernel.
template <class LoadTap>
HWY_INLINE void transform_kernels(const LoadTap& load, const WinogradMatrices& to, float* out) {
  transform_square<WeightTransform>(
      [&](int y, int x) { return load(y * 3 + x); },
      [&](int y, int x, Vector v) { hn::Store(v, Tag(), out + (y * 6 + x) * to.matrix_step); });
}

// Transforms some columns of weights (3, 3, depth, columns).
void transform_weights(const float* weights, int depth, int columns, const PanelRange& some,
                       const WinogradMatrices& to) {
  const int64_t tap_step = int64_t{depth} * columns;
  weights += some.first * 16;
  for (int k = 0; k < depth; ++k) {
    for_vectors(some.channels_of(columns), [&](int panel, int lane, int count) {
      const float* at = weights + int64_t{k} * columns + panel * 16 + lane;
      transform_kernels([&](int tap) { return load_first(count, at + tap * tap_step); }, to,
                        to.data + panel * to.panel_step + k * 16 + lane);
    });
  }
}

// Transforms some columns of weights (3, 3, columns, depth) with their kernels turned by half a
// turn, as the gradient of the input needs them.
void transform_turned_weights(const float* weights, int depth, int columns, const PanelRange& some,
                              const WinogradMatrices& to) {
  const int64_t tap_step = int64_t{depth} * columns;
  HWY_ALIGN float block[9][16][16];  // of one panel: tap, depth, column
  weights += int64_t{some.first} * 16 * depth;
  for (int panel = 0; panel < some.count; ++panel) {
    const int width = std::min(16, some.channels_of(columns) - panel * 16);
    for (int first = 0; first < depth; first += 16) {
      const int height = std::min(16, depth - first);
      for (int tap = 0; tap < 9; ++tap) {
        const float* from = weights + (8 - tap) * tap_step + int64_t{panel} * 16 * depth + first;
        for (int column = 0; column < 16; ++column) {
          for (int k = 0; k < height; ++k) {
            block[tap][k][column] = column < width ? from[int64_t{column} * depth + k] : 0.0f;
          }
        }
      }
      for (int k = 0; k < height; ++k) {
        for (int lane = 0; lane < 16; lane += kLanes) {
          transform_kernels([&](int tap) { return hn::Load(Tag(), &block[tap][k][lane]); }, to,
                            to.data + panel * to.panel_step + (first + k) * 16 + lane);
        }
      }
    }
  }
}

// The inverse: gradients of some columns of weights (3, 3, depth, columns).
void transform_weight_gradients(const WinogradMatrices& from, int depth, int columns,
                                const PanelRange& some, float* gradients) {
  const Tag d;
  gradients += some.first * 16;
  for (int k = 0; k < depth; ++k) {
    for_vectors(some.channels_of(columns), [&](int panel, int lane, int count) {
      const float* in = from.data + panel * from.panel_step + k * 16 + lane;
      float* at = gradients + int64_t{k} * columns + panel * 16 + lane;
      transform_square<WeightGradientTransform>(
          [&](int y, int x) { return hn::Load(d, in + (y * 6 + x) * from.matrix_step); },
          [&](int y, int x, Vector v) {
            store_first(count, v, at + int64_t{y * 3 + x} * depth * columns);
          });
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#endif
