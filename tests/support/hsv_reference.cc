#include "tests/support/hsv_reference.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace stoker {
namespace {

using HsvPixel = std::array<int, 3>;

// RGB2HSV_b of OpenCV: integers with 12 fractional bits.
HsvPixel to_opencv_hsv(const uint8_t* rgb) {
  const int r = rgb[0], g = rgb[1], b = rgb[2];
  const int v = std::max({r, g, b}), range = v - std::min({r, g, b});
  if (range == 0) return {0, 0, v};
  const auto fixed = [](int value, double factor) {
    const int product = value * static_cast<int>(std::nearbyint(4096 * factor)) + 2048;
    return product >= 0 ? product / 4096 : -((4095 - product) / 4096);
  };
  const int s = fixed(range, 255.0 / v);
  const int turns = v == r ? g - b : v == g ? b - r + 2 * range : r - g + 4 * range;
  const int h = fixed(turns, 30.0 / range);
  return {h < 0 ? h + 180 : h, s, v};
}

// HSV2RGB_simd: floats, with a fused multiply and add, as its builds for AVX2 have it.
void from_opencv_hsv(const HsvPixel& hsv, uint8_t* rgb) {
  const float h = static_cast<float>(hsv[0]) * (6.0f / 180);
  const int sector = static_cast<int>(h);
  const float f = h - static_cast<float>(sector);
  const float s = static_cast<float>(hsv[1]) * (1.0f / 255);
  const float v = static_cast<float>(hsv[2]) * (1.0f / 255);
  const std::array<float, 4> shades{v, v * (1 - s), v * std::fma(-s, f, 1.0f),
                                    v * std::fma(-s, 1 - f, 1.0f)};
  constexpr int kShades[6][3] = {{0, 3, 1}, {2, 0, 1}, {1, 0, 3}, {1, 2, 0}, {3, 1, 0}, {0, 1, 2}};
  for (int c = 0; c < 3; ++c) {
    rgb[c] = static_cast<uint8_t>(shades[static_cast<size_t>(kShades[sector][c])] * 255);
  }
}

// RandomHSV of Ultralytics: numpy's remainder has the sign of 180.
HsvPixel mapped_hsv(const HsvPixel& hsv, const HsvChange& change) {
  const double turned = hsv[0] + change.hue * 180;
  const double hue = turned - 180 * std::floor(turned / 180);
  const auto scaled = [](int byte, double factor) {
    return static_cast<int>(std::min(byte * factor, 255.0));
  };
  return {static_cast<int>(hue) % 180, scaled(hsv[1], change.saturation),
          scaled(hsv[2], change.value)};
}

}  // namespace

void hsv_reference(MutableImageView image, const HsvChange& change) {
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x) {
      uint8_t* pixel = image.data + y * image.stride_bytes + ptrdiff_t{3} * x;
      from_opencv_hsv(mapped_hsv(to_opencv_hsv(pixel), change), pixel);
    }
  }
}

}  // namespace stoker
