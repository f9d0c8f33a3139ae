// Shared by the parts of warp.cc: where output pixels come from, and how one of them is made
// anywhere in the source, edges included.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "decode/image.h"
#include "decode/pixel/warp.h"

namespace stoker {

inline void copy_pixel(const uint8_t* from, uint8_t* to) { std::memcpy(to, from, 3); }

inline const uint8_t* pixel_at(ImageView image, int x, int y) {
  return image.data + y * image.stride_bytes + 3 * static_cast<ptrdiff_t>(x);
}

inline const uint8_t* clamped_pixel(ImageView image, int x, int y) {
  return pixel_at(image, std::clamp(x, 0, image.width - 1), std::clamp(y, 0, image.height - 1));
}

// Whether a coordinate is on the source. Not a number: no.
inline bool is_on(double coordinate, int size) { return coordinate >= 0.0 && coordinate < size; }

// Values of WarpPlaces::x that are no columns.
inline constexpr int32_t kOutside = -2;   // the fill
inline constexpr int32_t kNoNumber = -3;  // black

// Where output pixels of a part of a row come from.
struct WarpPlaces {
  static constexpr int kMax = 256;  // a multiple of every vector's lanes
  // The source pixel whose centre is at or before the coordinates (nearest: that has them). -1 is
  // the edge's first pixel, repeated.
  alignas(64) int32_t x[kMax];
  alignas(64) int32_t y[kMax];
  // Where the bytes of that pixel are, if a kernel may make the output: no edge is near. Else
  // negative.
  alignas(64) int32_t inner[kMax];
  // How far the coordinates are from that centre, in [0, 1).
  alignas(64) double dx[kMax];
  alignas(64) double dy[kMax];
};

inline double linear(double a, double b, double d) { return a + (b - a) * d; }

inline void bilinear_pixel(ImageView in, int x, int y, double dx, double dy, uint8_t* out) {
  const uint8_t* corners[4] = {clamped_pixel(in, x, y), clamped_pixel(in, x + 1, y),
                               clamped_pixel(in, x, y + 1), clamped_pixel(in, x + 1, y + 1)};
  for (int c = 0; c < 3; ++c) {
    const double above = linear(corners[0][c], corners[1][c], dx);
    const double below = linear(corners[2][c], corners[3][c], dx);
    out[c] = static_cast<uint8_t>(linear(above, below, dy));
  }
}

// The order of the additions is Pillow's.
inline double cubic(const double* v, double d) {
  const double p2 = -v[0] + v[2];
  const double p3 = 2 * (v[0] - v[1]) + v[2] - v[3];
  const double p4 = -v[0] + v[1] - v[2] + v[3];
  return v[1] + d * (p2 + d * (p3 + d * p4));
}

inline void bicubic_pixel(ImageView in, int x, int y, double dx, double dy, uint8_t* out) {
  for (int c = 0; c < 3; ++c) {
    double rows[4];
    for (int r = 0; r < 4; ++r) {
      double values[4];
      for (int k = 0; k < 4; ++k) values[k] = clamped_pixel(in, x - 1 + k, y - 1 + r)[c];
      rows[r] = cubic(values, dx);
    }
    out[c] = static_cast<uint8_t>(std::clamp(cubic(rows, dy), 0.0, 255.0));
  }
}

// Makes the pixel of one place.
inline void plain_pixel(ImageView in, const WarpPlaces& places, int i, Interpolation interpolation,
                        Rgb fill, uint8_t* out) {
  const int x = places.x[i], y = places.y[i];
  if (x == kOutside) return copy_pixel(fill.data(), out);
  if (x == kNoNumber) return static_cast<void>(std::memset(out, 0, 3));
  switch (interpolation) {
    case Interpolation::nearest:
      return copy_pixel(pixel_at(in, x, y), out);
    case Interpolation::bilinear:
      return bilinear_pixel(in, x, y, places.dx[i], places.dy[i], out);
    case Interpolation::bicubic:
      return bicubic_pixel(in, x, y, places.dx[i], places.dy[i], out);
  }
}

// warp_affine() without interpolation: Pillow has three ways to count the coordinates, and takes
// the first that fits the matrix.
void warp_affine_nearest(ImageView in, const std::array<double, 6>& matrix, Rgb fill,
                         MutableImageView out);

}  // namespace stoker
