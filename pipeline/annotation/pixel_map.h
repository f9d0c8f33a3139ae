// Which pixel of a picture is seen at each place after its motions, by nearest neighbour. Crops,
// resizes, flips, turns and pads move columns and rows as a whole: they are one map for each axis.
// Affine motions and perspectives are not; the places before them are computed for each pixel that
// is seen in the end.
//
// The results are those of torchvision.transforms.v2.functional on Mask tensors. Its warps compute
// in float32 (_affine_grid, _perspective_grid, torch's grid_sample): here the same operations are
// done in the same order, so that halves fall to the same side. A torch whose matrix product fuses
// multiply and add, as a BLAS library may on another machine, differs in one of 260,000 pixels.
//
// Owner: a MaskMover. Threads: one at a time. Nothing is allocated once sizes were met.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pipeline/annotation/motion.h"

namespace stoker {

// Place (x, y) shows pixel (along_x[x], along_y[y]); (along_y[y], along_x[x]) if `is_turned`.
// kNothing: no pixel. The numbers of a map grow or fall, and those of nothing are at its ends.
struct AxisMaps {
  static constexpr int32_t kNothing = -1;
  struct Place {
    int32_t x = 0, y = 0;  // x: kNothing if there is no pixel
  };

  Size before{};  // the picture whose pixels these are
  bool is_turned = false;
  std::vector<int32_t> along_x, along_y;

  void begin(Size size);
  void move(const Movement& movement);
  // Replaces places by the pixels that they show.
  void replace(std::span<Place> places) const;
  Size size() const { return {static_cast<int>(along_x.size()), static_cast<int>(along_y.size())}; }
  // Where the picture's columns and rows are seen.
  const std::vector<int32_t>& columns() const { return is_turned ? along_y : along_x; }
  const std::vector<int32_t>& rows() const { return is_turned ? along_x : along_y; }
};

class PixelMap {
 public:
  using Place = AxisMaps::Place;

  void begin(Size source);
  // REQUIRES: the motion is known. Motions of objects alone change nothing.
  void move(const Movement& movement);
  Size size() const { return stages_[count_ - 1].maps.size(); }

  // How the source is seen before the first warp, or in the end.
  const AxisMaps& maps() const { return stages_[0].maps; }
  bool has_warps() const { return count_ > 1; }
  // The places in maps() that are seen in the end: size(), row-major.
  std::span<const Place> places();

 private:
  struct Stage {
    Movement warp;  // before the maps, but of the first stage
    AxisMaps maps;
  };

  void add_stage(const Movement& warp, Size size);
  void find_places(int y, std::span<Place> row) const;

  std::vector<Stage> stages_;  // the first `count_`; the others keep their memory
  size_t count_ = 0;
  std::vector<Place> places_;
  bool has_places_ = false;
};

}  // namespace stoker
