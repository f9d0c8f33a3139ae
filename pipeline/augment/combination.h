// How a stage makes one picture of those of several samples, as mosaic, mixup and copy_paste do:
// they lie on a canvas, each resized, and what lies on them moves along. The stages before such a
// stage are of each of the pictures, with draws of its own, those behind it of the canvas. A stage
// says with numbers alone what is done (stage.h); row/combined_row makes it. Values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "decode/crop_spec.h"
#include "decode/image.h"
#include "decode/pixel/warp.h"
#include "pipeline/random/random_key.h"

namespace stoker {

// A row has so many pictures at most: the partners of a sample have partners themselves, where
// such stages follow each other.
inline constexpr size_t kMaxPictures = 8;

enum class CombinationKind : uint8_t {
  place,  // side by side
  blend,  // the mean of two
  paste,  // objects of the second on the first
};

struct PlacedPicture {
  Size size;         // to which it is resized
  Box shown;         // the part of it that is on the canvas
  int x = 0, y = 0;  // where the part's upper left corner is
};

struct Combination {
  CombinationKind kind = CombinationKind::place;
  Size canvas;
  Rgb fill{};                               // where no picture is
  Filter filter = Filter::bilinear;         // of the resizes
  std::array<PlacedPicture, 4> pictures{};  // side by side: from left to right
  float own_share = 1;            // blend: the first picture's, a multiple of 1 / kMixParts
  RandomKey choices = {0, 0, 0};  // paste: which objects
};

// Pictures of one size, one over the other.
inline Combination overlaid(CombinationKind kind, std::span<const Size> pictures) {
  Combination all{.kind = kind, .canvas = pictures[0]};
  const Box whole{0, 0, all.canvas.width, all.canvas.height};
  for (size_t i = 0; i < pictures.size(); ++i) all.pictures[i] = {pictures[i], whole};
  return all;
}

}  // namespace stoker
