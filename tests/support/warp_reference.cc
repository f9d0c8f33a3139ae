#include "tests/support/warp_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stoker {
namespace {

using Matrix = std::array<double, 6>;

// An x86 processor's result for a number that is none or does not fit.
constexpr int kNoInt = std::numeric_limits<int>::min();

int truncated_to_byte(double v) {
  return v > -2147483649.0 && v < 2147483648.0 ? static_cast<int>(v) : kNoInt;
}

struct Target {
  ImageView in;
  Interpolation interpolation;
  Rgb fill;
  MutableImageView out;

  uint8_t* pixel(int x, int y) const { return out.data + y * out.stride_bytes + 3 * x; }
  int value(int x, int y, int c) const {
    x = std::clamp(x, 0, in.width - 1);
    y = std::clamp(y, 0, in.height - 1);
    return in.data[y * in.stride_bytes + 3 * x + c];
  }
  void copy(int from_x, int from_y, int x, int y) const {
    const bool is_inside = from_x >= 0 && from_x < in.width && from_y >= 0 && from_y < in.height;
    for (int c = 0; c < 3; ++c) {
      pixel(x, y)[c] = is_inside ? static_cast<uint8_t>(value(from_x, from_y, c)) : fill[c];
    }
  }
};

double cubic(double v1, double v2, double v3, double v4, double d) {
  const double p2 = -v1 + v3;
  const double p3 = 2 * (v1 - v2) + v3 - v4;
  const double p4 = -v1 + v2 - v3 + v4;
  return v2 + d * (p2 + d * (p3 + d * p4));
}

double blended(const Target& t, int x, int y, double dx, double dy, int c) {
  const auto linear = [](double a, double b, double d) { return a + (b - a) * d; };
  if (t.interpolation == Interpolation::bilinear) {
    const auto row = [&](int at) { return linear(t.value(x, at, c), t.value(x + 1, at, c), dx); };
    return linear(row(y), row(y + 1), dy);
  }
  const auto row = [&](int at) {
    return cubic(t.value(x - 1, at, c), t.value(x, at, c), t.value(x + 1, at, c),
                 t.value(x + 2, at, c), dx);
  };
  return cubic(row(y - 1), row(y), row(y + 1), row(y + 2), dy);
}

// Makes output pixel (x, y), which shows the source at (from_x, from_y).
void make_pixel(const Target& t, double from_x, double from_y, int x, int y) {
  if (t.interpolation == Interpolation::nearest) {
    const auto index = [](double v) { return v < 0 ? -1 : truncated_to_byte(v); };
    return t.copy(index(from_x), index(from_y), x, y);
  }
  if (from_x < 0 || from_x >= t.in.width || from_y < 0 || from_y >= t.in.height) {
    return t.copy(-1, -1, x, y);
  }
  const bool is_number = !std::isnan(from_x) && !std::isnan(from_y);
  const double left = is_number ? std::floor(from_x - 0.5) : 0;
  const double top = is_number ? std::floor(from_y - 0.5) : 0;
  for (int c = 0; c < 3; ++c) {
    const double v = blended(t, static_cast<int>(left), static_cast<int>(top), from_x - 0.5 - left,
                             from_y - 0.5 - top, c);
    const bool is_none = std::isnan(v);
    t.pixel(x, y)[c] = is_none ? 0 : static_cast<uint8_t>(std::clamp(v, 0.0, 255.0));
  }
}

// The coordinates are sums of the steps, from the first pixel on.
void add_steps(const Target& t, const Matrix& m) {
  double row_x = m[2] + m[1] * 0.5 + m[0] * 0.5, row_y = m[5] + m[4] * 0.5 + m[3] * 0.5;
  for (int y = 0; y < t.out.height; ++y, row_x += m[1], row_y += m[4]) {
    double from_x = row_x, from_y = row_y;
    for (int x = 0; x < t.out.width; ++x, from_x += m[0], from_y += m[3]) {
      make_pixel(t, from_x, from_y, x, y);
    }
  }
}

void count_fixed(const Target& t, const Matrix& m) {
  const auto fixed = [](double v) {
    return static_cast<uint32_t>(truncated_to_byte(std::floor(v * 65536.0 + 0.5)));
  };
  const auto whole = [](uint32_t v) { return static_cast<int32_t>(v) >> 16; };
  uint32_t row_x = fixed(m[2] + m[0] * 0.5 + m[1] * 0.5);
  uint32_t row_y = fixed(m[5] + m[3] * 0.5 + m[4] * 0.5);
  for (int y = 0; y < t.out.height; ++y, row_x += fixed(m[1]), row_y += fixed(m[4])) {
    uint32_t from_x = row_x, from_y = row_y;
    for (int x = 0; x < t.out.width; ++x, from_x += fixed(m[0]), from_y += fixed(m[3])) {
      t.copy(whole(from_x), whole(from_y), x, y);
    }
  }
}

bool fits_fixed(const Matrix& m, int width, int height) {
  for (const int x : {0, width}) {
    for (const int y : {0, height}) {
      if (!(std::fabs(x * m[0] + y * m[1] + m[2]) < 32768.0)) return false;
      if (!(std::fabs(x * m[3] + y * m[4] + m[5]) < 32768.0)) return false;
    }
  }
  return true;
}

}  // namespace

void warp_affine_reference(ImageView in, const Matrix& m, Interpolation interpolation, Rgb fill,
                           MutableImageView out) {
  const Target t{in, interpolation, fill, out};
  if (interpolation == Interpolation::nearest) {
    const bool only_scales = m[1] == 0 && m[3] == 0;
    const bool is_fixed = !only_scales && fits_fixed(m, out.width, out.height);
    return is_fixed ? count_fixed(t, m) : add_steps(t, m);
  }
  for (int y = 0; y < out.height; ++y) {
    for (int x = 0; x < out.width; ++x) {
      const double xx = x + 0.5, yy = y + 0.5;
      make_pixel(t, m[0] * xx + m[1] * yy + m[2], m[3] * xx + m[4] * yy + m[5], x, y);
    }
  }
}

void warp_perspective_reference(ImageView in, const std::array<double, 8>& c,
                                Interpolation interpolation, Rgb fill, MutableImageView out) {
  const Target t{in, interpolation, fill, out};
  for (int y = 0; y < out.height; ++y) {
    for (int x = 0; x < out.width; ++x) {
      const double xx = x + 0.5, yy = y + 0.5;
      const double divisor = c[6] * xx + c[7] * yy + 1;
      make_pixel(t, (c[0] * xx + c[1] * yy + c[2]) / divisor,
                 (c[3] * xx + c[4] * yy + c[5]) / divisor, x, y);
    }
  }
}

}  // namespace stoker
