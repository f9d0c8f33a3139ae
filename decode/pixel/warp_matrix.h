// The matrices of warp.h for rotations, affine transforms and perspectives, computed as Pillow's
// Image.rotate and torchvision.transforms.v2.functional do for PIL images. Angles are in degrees.
// All numbers are finite. Pure functions; sine, cosine and tangent are the C library's, as Python's
// are.
#pragma once

#include <array>
#include <optional>

#include "decode/image.h"

namespace stoker {

struct Point {
  double x = 0, y = 0;  // pixels from the upper left corner
};

// Returns how many quarters of a circle Image.rotate turns the image by, counter-clockwise, without
// a matrix: 0 to 3, or nothing if it does use a matrix. (turn() in decode/pixel_ops.h does it.)
std::optional<int> quarter_turns(double degrees, Size in, bool expand, bool has_center);

// Returns the matrix of Image.rotate, counter-clockwise, and the size of its result: that of `in`,
// or with `expand` one that has room for the rotated image. Without `center` it is the middle.
std::array<double, 6> rotation_matrix(double degrees, Size in, bool expand,
                                      std::optional<Point> center, Size& out);

// Parameters of torchvision's affine(). REQUIRES: scale > 0.
struct AffineParameters {
  double degrees = 0;  // clockwise
  Point translate{};   // pixels
  double scale = 1;
  Point shear{};  // degrees, along x and along y
};

// `center`: torchvision's default is (width / 2, height / 2). The older torchvision.transforms adds
// in another order: of pure shears with interpolation, whose coordinates are whole numbers in one
// direction, a few in a hundred then have other bytes.
std::array<double, 6> affine_matrix(Point center, const AffineParameters& parameters);

// The upper left, upper right, lower right and lower left corner, in whole pixels.
struct Corner {
  int x = 0, y = 0;
};
using Corners = std::array<Corner, 4>;

// Returns the coefficients that show the source's `start` corners at the output's `end` corners, as
// torchvision's perspective(): a system of 8 equations, solved in double and rounded to float.
// torchvision solves it by torch.linalg.lstsq, whose last bits depend on the BLAS; this one
// eliminates. Bytes differ in about one of 3000 perspectives of 224 px with the usual distortion of
// 0.5, and in up to one of 80 of small pictures (torchvision 0.14 solves in float: in most).
// Nothing if the corners do not determine a perspective.
std::optional<std::array<double, 8>> perspective_coefficients(const Corners& start,
                                                              const Corners& end);

}  // namespace stoker
