// The numbers by which a box is given, under torchvision's names. Pure functions.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <span>

namespace stoker {

// In pixels; angles are in degrees, counterclockwise, as torchvision.ops.box_convert() has them.
enum class BoxFormat : uint8_t {
  xyxy,    // two corners: the upper left, the lower right
  xywh,    // the upper left corner, width, height
  cxcywh,  // the centre, width, height
  // Rotated boxes: the corners that are upper left, upper right, lower right and lower left before
  // the turn; the first of these with width, height and angle; and the centre with these.
  xyxyxyxy,
  xywhr,
  cxcywhr,
};

// The length of a side. (hypot() has a version of its own in glibc 2.35, which wheels for 2.34 may
// not need.)
inline double length_of(double x, double y) { return std::sqrt(x * x + y * y); }

int box_numbers(BoxFormat format);
bool is_rotated(BoxFormat format);

// Returns x, y of the four corners, in the order of xyxyxyxy. REQUIRES: box_numbers() numbers.
std::array<double, 8> box_corners(BoxFormat format, std::span<const double> box);
// Writes box_numbers() numbers. REQUIRES: the format is of upright boxes, or of rotated ones.
void write_box(BoxFormat format, const std::array<double, 4>& xyxy, float* out);
void write_corners(BoxFormat format, const std::array<double, 8>& corners, float* out);

}  // namespace stoker
