#include "pipeline/augment/warp_steps.h"

#include <algorithm>

#include "decode/pixel_ops.h"

namespace stoker {
namespace {

void affine(const PixelStep& step, ImageView image, MutableImageView out, PixelScratch&) {
  std::array<double, 6> matrix;
  std::copy_n(step.values.begin(), matrix.size(), matrix.begin());
  warp_affine(image, matrix, static_cast<Interpolation>(step.choice), step.fill, out);
}

void perspective(const PixelStep& step, ImageView image, MutableImageView out, PixelScratch&) {
  warp_perspective(image, step.values, static_cast<Interpolation>(step.choice), step.fill, out);
}

void turn_quarters(const PixelStep& step, ImageView image, MutableImageView out, PixelScratch&) {
  turn(image, static_cast<int>(step.values[0]), out);
}

void set(PixelStep& step, const WarpOptions& options) {
  step.choice = static_cast<uint8_t>(options.interpolation);
  step.fill = options.fill;
}

}  // namespace

const PixelKind kAffineStep{.name = "affine",
                            .values = {"a", "b", "c", "d", "e", "f"},
                            .choice = "interpolation",
                            .choices = kInterpolationNames,
                            .fill = true,
                            .moves = true,
                            .make = affine};
const PixelKind kPerspectiveStep{.name = "perspective",
                                 .values = {"a", "b", "c", "d", "e", "f", "g", "h"},
                                 .choice = "interpolation",
                                 .choices = kInterpolationNames,
                                 .fill = true,
                                 .moves = true,
                                 .make = perspective};

const PixelKind kTurnStep{
    .name = "turn", .values = {"quarters"}, .moves = true, .make = turn_quarters};

void add_affine(Draws& draws, const std::array<double, 6>& matrix, const WarpOptions& options) {
  const auto [a, b, c, d, e, f] = matrix;
  set(draws.add(kAffineStep, {a, b, c, d, e, f}), options);
}

void add_rotation(Draws& draws, double degrees, const WarpOptions& options, bool expand,
                  std::optional<Point> center) {
  const Size before = draws.size();
  const auto quarters = quarter_turns(degrees, before, expand, center.has_value());
  if (quarters) {
    const Size turned{before.height, before.width};
    if (*quarters != 0) {
      draws.add(kTurnStep, *quarters % 2 ? turned : before, {double(*quarters)});
    }
    return;
  }
  Size size;
  const auto [a, b, c, d, e, f] = rotation_matrix(degrees, before, expand, center, size);
  set(draws.add(kAffineStep, size, {a, b, c, d, e, f}), options);
}

void add_perspective(Draws& draws, const std::array<double, 8>& coefficients,
                     const WarpOptions& options) {
  const auto [a, b, c, d, e, f, g, h] = coefficients;
  set(draws.add(kPerspectiveStep, {a, b, c, d, e, f, g, h}), options);
}

}  // namespace stoker
