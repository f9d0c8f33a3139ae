// The steps that move pixels by a matrix: Pillow's Image.transform.
#pragma once

#include <optional>

#include "decode/pixel/warp.h"
#include "decode/pixel/warp_matrix.h"
#include "pipeline/augment/draws.h"

namespace stoker {

inline constexpr const char* kInterpolationNames[] = {"nearest", "bilinear", "bicubic"};

extern const PixelKind kAffineStep;       // a, b, c, d, e, f; choice: Interpolation; fill
extern const PixelKind kPerspectiveStep;  // eight coefficients; the same
extern const PixelKind kTurnStep;         // quarters of a circle, counterclockwise, 1 to 3

struct WarpOptions {
  Interpolation interpolation = Interpolation::nearest;
  Rgb fill{};
};

// Append a step, or none that would change nothing. Output pixel (x, y) shows the input at the
// matrix times (x + 1/2, y + 1/2, 1).
void add_affine(Draws& draws, const std::array<double, 6>& matrix, const WarpOptions& options);
// Image.rotate: counterclockwise, about the centre or a point. `expand`: the image grows to hold
// all of it.
void add_rotation(Draws& draws, double degrees, const WarpOptions& options, bool expand = false,
                  std::optional<Point> center = {});
void add_perspective(Draws& draws, const std::array<double, 8>& coefficients,
                     const WarpOptions& options);

}  // namespace stoker
