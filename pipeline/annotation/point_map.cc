#include "pipeline/annotation/point_map.h"

#include <algorithm>
#include <cmath>

namespace stoker {
namespace {

constexpr double kOutside = -1;
constexpr std::array<double, 9> kToOutside{0, 0, kOutside, 0, 0, kOutside, 0, 0, 1};

std::array<double, 9> turned(int quarters, double width, double height) {
  if (quarters == 1) return {0, 1, 0, -1, 0, width, 0, 0, 1};
  if (quarters == 2) return {-1, 0, width, 0, -1, height, 0, 0, 1};
  return {0, -1, height, 1, 0, 0, 0, 0, 1};
}

}  // namespace

PointMap::PointMap(const Movement& movement, Points points) : matrix_{1, 0, 0, 0, 1, 0, 0, 0, 1} {
  const auto& [a, b, c, d, e, f, g, h] = movement.values;
  const Size before = movement.before, after = movement.after;
  const double width = before.width, height = before.height;
  // The last pixel's number is one less than the width.
  const double less = points == Points::pixels ? 1 : 0;
  switch (movement.motion) {
    case Motion::crop:
      matrix_ = {1, 0, -a, 0, 1, -b, 0, 0, 1};
      break;
    case Motion::resize:
      matrix_ = {after.width / width, 0, 0, 0, after.height / height, 0, 0, 0, 1};
      break;
    case Motion::flip:
      matrix_ = {-1, 0, width - less, 0, 1, 0, 0, 0, 1};
      break;
    case Motion::vertical_flip:
      matrix_ = {1, 0, 0, 0, -1, height - less, 0, 0, 1};
      break;
    case Motion::turn:
      matrix_ = turned(static_cast<int>(a), width, height);
      break;
    case Motion::pad:
      matrix_ = {1, 0, a, 0, 1, b, 0, 0, 1};
      break;
    case Motion::affine:
      invert({a, b, c, d, e, f, 0, 0, 1});
      // A rotation that makes the picture larger: torchvision puts what it turns into the corner.
      if (after != before) move_to_corner(before);
      break;
    case Motion::perspective:
      invert({a, b, c, d, e, f, g, h, 1});
      break;
    case Motion::none:
    case Motion::unknown:
    case Motion::keep_centers:
    case Motion::clamp:
    case Motion::sanitize:
    case Motion::drop_empty:
      break;
  }
}

std::array<double, 2> PointMap::operator()(double x, double y) const {
  const auto& [a, b, c, d, e, f, g, h, i] = matrix_;
  const double scale = g * x + h * y + i;
  const double to_x = (a * x + b * y + c) / scale, to_y = (d * x + e * y + f) / scale;
  if (!std::isfinite(to_x) || !std::isfinite(to_y)) return {kOutside, kOutside};
  return {to_x, to_y};
}

// By the adjugate: a matrix and its multiples map alike.
void PointMap::invert(const Matrix& matrix) {
  const auto& [a, b, c, d, e, f, g, h, i] = matrix;
  matrix_ = {e * i - f * h, c * h - b * i, b * f - c * e, f * g - d * i, a * i - c * g,
             c * d - a * f, d * h - e * g, b * g - a * h, a * e - b * d};
  const double determinant = a * matrix_[0] + b * matrix_[3] + c * matrix_[6];
  if (determinant == 0 || !std::isfinite(determinant)) matrix_ = kToOutside;
}

// Moves everything so that the picture's smallest coordinates are 0. REQUIRES: an affine matrix.
void PointMap::move_to_corner(Size picture) {
  const double width = picture.width, height = picture.height, scale = matrix_[8];
  double left = INFINITY, top = INFINITY;
  for (const auto& [x, y] : {std::array{0.0, 0.0}, {width, 0.0}, {width, height}, {0.0, height}}) {
    const auto [to_x, to_y] = (*this)(x, y);
    left = std::min(left, to_x);
    top = std::min(top, to_y);
  }
  matrix_[2] -= left * scale;
  matrix_[5] -= top * scale;
}

}  // namespace stoker
