#include "decode/pixel/warp_matrix.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <utility>

namespace stoker {
namespace {

constexpr double kRadians = std::numbers::pi / 180.0;

// Python's degrees % 360.
double within_a_turn(double degrees) {
  const double rest = std::fmod(degrees, 360.0);
  return rest < 0 ? rest + 360.0 : rest;
}

// Python's round(v, 15), which rounds the exact decimal value. REQUIRES: |v| <= 1.
double round_15(double v) {
  char text[24];
  const auto end = std::to_chars(text, text + sizeof text, v, std::chars_format::fixed, 15).ptr;
  double rounded = v;
  std::from_chars(text, end, rounded);
  return rounded;
}

Point apply(const std::array<double, 6>& m, Point p) {
  return {m[0] * p.x + m[1] * p.y + m[2], m[3] * p.x + m[4] * p.y + m[5]};
}

// Returns how many whole pixels hold values from the least to the largest.
int room(double a, double b, double c, double d) {
  return static_cast<int>(std::ceil(std::max({a, b, c, d})) - std::floor(std::min({a, b, c, d})));
}

Size rotated_size(const std::array<double, 6>& m, Size in) {
  const double w = in.width, h = in.height;
  const Point p[4] = {apply(m, {0, 0}), apply(m, {w, 0}), apply(m, {w, h}), apply(m, {0, h})};
  return {room(p[0].x, p[1].x, p[2].x, p[3].x), room(p[0].y, p[1].y, p[2].y, p[3].y)};
}

constexpr int kUnknowns = 8;
using Equation = std::array<double, kUnknowns + 1>;  // the last is the right side
using Equations = std::array<Equation, kUnknowns>;

// Makes the upper triangle, with the largest pivot of each column. Returns false if there is none.
bool eliminate(Equations& rows) {
  for (int k = 0; k < kUnknowns; ++k) {
    const auto larger = [&](const Equation& a, const Equation& b) {
      return std::fabs(a[k]) < std::fabs(b[k]);
    };
    std::iter_swap(rows.begin() + k, std::max_element(rows.begin() + k, rows.end(), larger));
    if (rows[k][k] == 0.0) return false;
    for (int i = k + 1; i < kUnknowns; ++i) {
      const double factor = rows[i][k] / rows[k][k];
      for (int j = k; j <= kUnknowns; ++j) rows[i][j] -= factor * rows[k][j];
    }
  }
  return true;
}

std::array<double, kUnknowns> substitute_back(const Equations& rows) {
  std::array<double, kUnknowns> solution{};
  for (int k = kUnknowns - 1; k >= 0; --k) {
    double rest = rows[k][kUnknowns];
    for (int j = k + 1; j < kUnknowns; ++j) rest -= rows[k][j] * solution[j];
    solution[k] = rest / rows[k][k];
  }
  return solution;
}

}  // namespace

std::optional<int> quarter_turns(double degrees, Size in, bool expand, bool has_center) {
  if (has_center) return std::nullopt;
  const double angle = within_a_turn(degrees);
  if (angle == 0) return 0;
  if (angle == 180) return 2;
  const bool keeps_size = expand || in.width == in.height;
  if (keeps_size && angle == 90) return 1;
  if (keeps_size && angle == 270) return 3;
  return std::nullopt;
}

std::array<double, 6> rotation_matrix(double degrees, Size in, bool expand,
                                      std::optional<Point> center, Size& out) {
  const Point middle = center.value_or(Point{in.width / 2.0, in.height / 2.0});
  const double angle = -(within_a_turn(degrees) * kRadians);
  const double cosine = round_15(std::cos(angle));
  std::array<double, 6> m = {
      cosine, round_15(std::sin(angle)), 0.0, round_15(-std::sin(angle)), cosine, 0.0};
  const Point moved = apply(m, {-middle.x, -middle.y});
  m[2] = moved.x + middle.x;
  m[5] = moved.y + middle.y;
  out = in;
  if (!expand) return m;
  out = rotated_size(m, in);
  const Point corner = apply(m, {-(out.width - in.width) / 2.0, -(out.height - in.height) / 2.0});
  m[2] = corner.x;
  m[5] = corner.y;
  return m;
}

std::array<double, 6> affine_matrix(Point center, const AffineParameters& parameters) {
  const double rotation = parameters.degrees * kRadians;
  const double shear_x = parameters.shear.x * kRadians, shear_y = parameters.shear.y * kRadians;
  const double tangent = std::tan(shear_x);
  const double a = std::cos(rotation - shear_y) / std::cos(shear_y);
  const double c = std::sin(rotation - shear_y) / std::cos(shear_y);
  const double b = -(a * tangent + std::sin(rotation));
  const double d = std::cos(rotation) - c * tangent;
  const double scale = parameters.scale;
  std::array<double, 6> m = {d / scale, -b / scale, 0.0, -c / scale, a / scale, 0.0};
  const double x = center.x + parameters.translate.x, y = center.y + parameters.translate.y;
  m[2] = center.x - m[0] * x - m[1] * y;
  m[5] = center.y - m[3] * x - m[4] * y;
  return m;
}

std::optional<std::array<double, 8>> perspective_coefficients(const Corners& start,
                                                              const Corners& end) {
  Equations rows{};
  for (int i = 0; i < 4; ++i) {
    const double x = end[i].x, y = end[i].y, to_x = start[i].x, to_y = start[i].y;
    rows[2 * i] = {x, y, 1, 0, 0, 0, -to_x * x, -to_x * y, to_x};
    rows[2 * i + 1] = {0, 0, 0, x, y, 1, -to_y * x, -to_y * y, to_y};
  }
  if (!eliminate(rows)) return std::nullopt;
  std::array<double, 8> coefficients = substitute_back(rows);
  for (double& value : coefficients) value = static_cast<float>(value);
  return coefficients;
}

}  // namespace stoker
