// Colour adjustments with Pillow's arithmetic: ImageEnhance is a blend in float with a degenerate
// image (black, the mean grey, the grey image), hue a rotation in 8-bit HSV.

#include <algorithm>
#include <array>
#include <cmath>

#include "decode/pixel_ops.h"

namespace stoker {
namespace {

// ImagingBlend: truncates, and clips only where the factor extrapolates.
uint8_t blend(int degenerate, int value, float factor) {
  const float mixed =
      static_cast<float>(degenerate) + factor * static_cast<float>(value - degenerate);
  return static_cast<uint8_t>(std::clamp(mixed, 0.0f, 255.0f));
}

// convert("L"): ITU-R 601 luma in 16 fractional bits.
int luma(const uint8_t* pixel) {
  return (pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >> 16;
}

template <class Op>
void for_each_row(MutableImageView image, const Op& op) {
  for (int y = 0; y < image.height; ++y) op(image.data + y * image.stride_bytes);
}

// Blends every sample with one grey.
void blend_with(MutableImageView image, int degenerate, double factor) {
  std::array<uint8_t, 256> table;
  for (int v = 0; v < 256; ++v) table[v] = blend(degenerate, v, static_cast<float>(factor));
  for_each_row(image, [&](uint8_t* row) {
    for (int i = 0; i < 3 * image.width; ++i) row[i] = table[row[i]];
  });
}

struct Hsv {
  uint8_t h, s, v;
};

// Pillow's rgb2hsv_row; mixes float and double as it does, because the last bit shows.
Hsv to_hsv(const uint8_t* rgb) {
  const int r = rgb[0], g = rgb[1], b = rgb[2];
  const int most = std::max({r, g, b});
  const int range = most - std::min({r, g, b});
  if (range == 0) return {0, 0, static_cast<uint8_t>(most)};
  const float span = static_cast<float>(range);
  const float s = span / static_cast<float>(most);
  const float rc = static_cast<float>(most - r) / span;
  const float gc = static_cast<float>(most - g) / span;
  const float bc = static_cast<float>(most - b) / span;
  float h;
  if (r == most) {
    h = bc - gc;
  } else if (g == most) {
    h = static_cast<float>(2.0 + rc - bc);
  } else {
    h = static_cast<float>(4.0 + gc - rc);
  }
  const double turn = h / 6.0 + 1.0;  // in [5/6, 11/6], so fmod(turn, 1) is a subtraction
  h = static_cast<float>(turn >= 1.0 ? turn - 1.0 : turn);
  return {static_cast<uint8_t>(h * 255.0), static_cast<uint8_t>(s * 255.0),
          static_cast<uint8_t>(most)};
}

// Returns round(x) for x >= 0.
uint8_t rounded(double x) {
  const int whole = static_cast<int>(x);
  return static_cast<uint8_t>(whole + (x - whole >= 0.5 ? 1 : 0));
}

// Pillow's hsv2rgb.
void from_hsv(Hsv hsv, uint8_t* rgb) {
  const uint8_t v = hsv.v;
  if (hsv.s == 0) {
    rgb[0] = rgb[1] = rgb[2] = v;
    return;
  }
  const double sector = static_cast<double>(hsv.h) * 6.0 / 255.0;  // 0..6
  const int i = static_cast<int>(sector);
  const float f = static_cast<float>(sector - i);
  const float fs = static_cast<float>(hsv.s / 255.0);
  const uint8_t p = rounded(v * (1.0 - fs));
  const uint8_t q = rounded(v * (1.0 - static_cast<double>(fs * f)));
  const uint8_t t = rounded(v * (1.0 - fs * (1.0 - f)));
  const uint8_t choices[6][3] = {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}};
  std::copy_n(choices[i % 6], 3, rgb);
}

}  // namespace

void adjust_brightness(MutableImageView image, double factor) { blend_with(image, 0, factor); }

void adjust_contrast(MutableImageView image, double factor) {
  int64_t sum = 0;
  for_each_row(image, [&](const uint8_t* row) {
    for (int x = 0; x < image.width; ++x) sum += luma(row + 3 * x);
  });
  const double count = static_cast<double>(image.width) * image.height;
  blend_with(image, static_cast<int>(static_cast<double>(sum) / count + 0.5), factor);
}

void adjust_saturation(MutableImageView image, double factor) {
  const float f = static_cast<float>(factor);
  for_each_row(image, [&](uint8_t* row) {
    for (int x = 0; x < image.width; ++x, row += 3) {
      const int grey = luma(row);
      for (int c = 0; c < 3; ++c) row[c] = blend(grey, row[c], f);
    }
  });
}

void adjust_hue(MutableImageView image, double factor) {
  const auto shift = static_cast<uint8_t>(static_cast<int>(factor * 255));
  for_each_row(image, [&](uint8_t* row) {
    for (int x = 0; x < image.width; ++x, row += 3) {
      Hsv hsv = to_hsv(row);
      hsv.h = static_cast<uint8_t>(hsv.h + shift);
      from_hsv(hsv, row);
    }
  });
}

}  // namespace stoker
