#include "tests/support/colour_reference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace stoker {
namespace {

uint8_t* row_of(MutableImageView image, int y) { return image.data + y * image.stride_bytes; }

// Calls op(pixel) for each pixel.
template <class Op>
void for_each_pixel(MutableImageView image, const Op& op) {
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x) op(row_of(image, y) + 3 * x);
  }
}

// Calls op(byte, channel) for each byte.
template <class Op>
void for_each_byte(MutableImageView image, const Op& op) {
  for_each_pixel(image, [&](uint8_t* pixel) {
    for (int c = 0; c < 3; ++c) op(pixel[c], c);
  });
}

// ImagingBlend: truncates, and clips only where the factor extrapolates.
uint8_t blend(int degenerate, int value, double factor) {
  const float mixed = static_cast<float>(degenerate) +
                      static_cast<float>(factor) * static_cast<float>(value - degenerate);
  return static_cast<uint8_t>(std::clamp(mixed, 0.0f, 255.0f));
}

// convert("L"): ITU-R 601 luma in 16 fractional bits.
int luma(const uint8_t* pixel) {
  return (pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >> 16;
}

struct HsvBytes {
  uint8_t h, s, v;
};

// Pillow's rgb2hsv_row; mixes float and double as it does, because the last bit shows.
HsvBytes to_hsv(const uint8_t* rgb) {
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
void from_hsv(HsvBytes hsv, uint8_t* rgb) {
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

void brightness_reference(MutableImageView image, double factor) {
  for_each_byte(image, [&](uint8_t& byte, int) { byte = blend(0, byte, factor); });
}

void contrast_reference(MutableImageView image, double factor) {
  double sum = 0;
  for_each_pixel(image, [&](const uint8_t* pixel) { sum += luma(pixel); });
  const int mean = static_cast<int>(sum / (static_cast<double>(image.width) * image.height) + 0.5);
  for_each_byte(image, [&](uint8_t& byte, int) { byte = blend(mean, byte, factor); });
}

void saturation_reference(MutableImageView image, double factor) {
  for_each_pixel(image, [&](uint8_t* pixel) {
    const int grey = luma(pixel);
    for (int c = 0; c < 3; ++c) pixel[c] = blend(grey, pixel[c], factor);
  });
}

void hue_reference(MutableImageView image, double factor) {
  const auto shift = static_cast<uint8_t>(static_cast<int>(factor * 255));
  for_each_pixel(image, [&](uint8_t* pixel) {
    HsvBytes hsv = to_hsv(pixel);
    hsv.h = static_cast<uint8_t>(hsv.h + shift);
    from_hsv(hsv, pixel);
  });
}

// ImageFilter.SMOOTH in the floats of Pillow's Filter.c, and a blend with it.
void sharpness_reference(MutableImageView image, double factor) {
  std::vector<std::vector<uint8_t>> old;
  for (int y = 0; y < image.height; ++y) {
    old.emplace_back(row_of(image, y), row_of(image, y) + 3 * image.width);
  }
  const float one = 1.0f / 13, five = 5.0f / 13;
  for (int y = 1; y < image.height - 1; ++y) {
    for (int i = 3; i < 3 * image.width - 3; ++i) {
      float sum = 0.5f;
      for (const int row : {y + 1, y, y - 1}) {
        const std::vector<uint8_t>& from = old[row];
        sum += from[i - 3] * one + from[i] * (row == y ? five : one) + from[i + 3] * one;
      }
      row_of(image, y)[i] = blend(static_cast<uint8_t>(sum), old[y][i], factor);
    }
  }
}

void grayscale_reference(MutableImageView image) {
  for_each_pixel(image,
                 [](uint8_t* pixel) { std::fill_n(pixel, 3, static_cast<uint8_t>(luma(pixel))); });
}

void invert_reference(MutableImageView image) {
  for_each_byte(image, [](uint8_t& byte, int) { byte = static_cast<uint8_t>(255 - byte); });
}

void posterize_reference(MutableImageView image, int bits) {
  const int lost = 1 << (8 - bits);
  for_each_byte(image,
                [&](uint8_t& byte, int) { byte = static_cast<uint8_t>(byte / lost * lost); });
}

void solarize_reference(MutableImageView image, double threshold) {
  for_each_byte(image, [&](uint8_t& byte, int) {
    if (byte >= threshold) byte = static_cast<uint8_t>(255 - byte);
  });
}

void gamma_reference(MutableImageView image, double gamma) {
  for_each_byte(image, [&](uint8_t& byte, int) {
    byte = static_cast<uint8_t>(
        std::min(255, static_cast<int>((255 + 1 - 1e-3) * std::pow(byte / 255.0, gamma))));
  });
}

void equalize_reference(MutableImageView image) {
  std::array<std::array<int64_t, 256>, 3> counts{};
  for_each_byte(image, [&](uint8_t& byte, int c) { ++counts[c][byte]; });
  const int64_t pixels = int64_t{image.width} * image.height;
  const auto equalized = [&](uint8_t byte, int c) {
    const auto& count = counts[c];
    int last = 255;
    while (last > 0 && count[last] == 0) --last;
    const int64_t step = (pixels - count[last]) / 255;
    if (step == 0) return byte;
    int64_t n = step / 2;
    for (int v = 0; v < byte; ++v) n += count[v];
    return static_cast<uint8_t>(std::min<int64_t>(n / step, 255));
  };
  for_each_byte(image, [&](uint8_t& byte, int c) { byte = equalized(byte, c); });
}

void autocontrast_reference(MutableImageView image) {
  int least[3] = {255, 255, 255}, most[3] = {0, 0, 0};
  for_each_byte(image, [&](uint8_t& byte, int c) {
    least[c] = std::min<int>(least[c], byte);
    most[c] = std::max<int>(most[c], byte);
  });
  for_each_byte(image, [&](uint8_t& byte, int c) {
    if (most[c] == least[c]) return;
    const double scale = 255.0 / (most[c] - least[c]);
    const double offset = -least[c] * scale;
    byte = static_cast<uint8_t>(std::clamp(static_cast<int>(byte * scale + offset), 0, 255));
  });
}

}  // namespace stoker
