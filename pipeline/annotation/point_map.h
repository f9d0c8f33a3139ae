// Where a motion takes the points of a picture, as a matrix. Values. Threads: any.
#pragma once

#include <array>
#include <cstdint>

#include "pipeline/annotation/motion.h"

namespace stoker {

class PointMap {
 public:
  // How torchvision counts: boxes have the sides of pixels, keypoints have the pixels' numbers.
  enum class Points : uint8_t { sides, pixels };

  // Where the points of boxes or keypoints go. Motions of objects alone move none. REQUIRES: the
  // motion is known.
  explicit PointMap(const Movement& movement, Points points = Points::sides);

  // Returns where a point goes: (-1, -1), which is outside, for one that goes to infinity, and for
  // all if the motion's matrix has no inverse.
  std::array<double, 2> operator()(double x, double y) const;

 private:
  using Matrix = std::array<double, 9>;  // rows
  void invert(const Matrix& matrix);
  void move_to_corner(Size picture);

  Matrix matrix_;
};

}  // namespace stoker
