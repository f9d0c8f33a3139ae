#include <algorithm>

#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stage/rounding.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

enum MosaicDraw : uint32_t { kMosaicX, kMosaicY };

// A place on a line of pixels: of a picture's `length` pixels, those from `first` on lie from
// `place` on.
struct TileStretch {
  int first, count, place;
};

// A picture that ends at the centre, or begins there, and is cut off at the canvas's side.
TileStretch before_centre(int length, int centre) {
  const int count = std::min(length, centre);
  return {length - count, count, centre - count};
}
TileStretch behind_centre(int length, int centre, int canvas) {
  return {0, std::min(length, canvas - centre), centre};
}

// The size is of a quarter of the canvas, which a picture alone lies in the middle of.
Combination alone_in_mosaic(Combination mosaic, Size picture, Size size) {
  const Size fitted = fitted_size(picture, size);
  mosaic.pictures[0] = {fitted,
                        {0, 0, fitted.width, fitted.height},
                        halves(mosaic.canvas.width - fitted.width)[0],
                        halves(mosaic.canvas.height - fitted.height)[0]};
  return mosaic;
}

Combination place_mosaic(Combination mosaic, std::span<const Size> pictures, Size size,
                         const RandomKey& key) {
  const auto centre = [&](uint32_t draw, int side) {
    return std::max(static_cast<int>(key.uniform(draw, 0.5 * side, 1.5 * side)), 1);
  };
  const int x = centre(kMosaicX, size.width), y = centre(kMosaicY, size.height);
  for (size_t i = 0; i < pictures.size(); ++i) {
    const Size fitted = fitted_size(pictures[i], size);
    const bool is_right = i % 2 == 1, is_lower = i / 2 == 1;
    const TileStretch across = is_right ? behind_centre(fitted.width, x, mosaic.canvas.width)
                                        : before_centre(fitted.width, x);
    const TileStretch down = is_lower ? behind_centre(fitted.height, y, mosaic.canvas.height)
                                      : before_centre(fitted.height, y);
    mosaic.pictures[i] = {
        fitted, {across.first, down.first, across.count, down.count}, across.place, down.place};
  }
  return mosaic;
}

StageActions make_mosaic(const Arguments& arguments) {
  const Size size = arguments.size("size").value();
  Combination empty{.canvas = {2 * size.width, 2 * size.height}};
  empty.fill = arguments.colour("fill");
  empty.filter = static_cast<Filter>(arguments.choice("filter"));
  return {.draw = {},
          .size = [=](std::optional<Size>, Size) { return std::optional(empty.canvas); },
          .combine =
              [=](const RandomKey& key, std::span<const Size> pictures) {
                return pictures.size() == 1 ? alone_in_mosaic(empty, pictures[0], size)
                                            : place_mosaic(empty, pictures, size, key);
              }};
}

}  // namespace

const StageType kMosaic{
    .name = "mosaic",
    .help = "Four samples around a random point of a canvas of twice the size",
    .details =
        "As the YOLO family (Bochkovskiy et al., \"YOLOv4\", 2020): each picture is resized to\n"
        "fit into `size`, lies at the point with one corner, and is cut off at the canvas's\n"
        "sides. affine and center_crop(size) make a row of it. Where it is not applied, the\n"
        "picture lies alone in the middle of the canvas.",
    .parameters = {{"size", ArgumentKind::size, nullptr, 1, kMaxSide / 2},
                   {"fill", ArgumentKind::colour, "114", 0, 255},
                   {"filter", ArgumentKind::choice, "bilinear", 0, 0, kFilterNames},
                   kProbability},
    .make = make_mosaic,
    .partners = 3};

}  // namespace stoker
