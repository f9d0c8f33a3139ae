// Moves label images and instance masks as the pixels under them: as the functions of
// torchvision.transforms.v2.functional on Mask tensors (nearest neighbour), bit for bit. Only the
// pixels that are seen in the end are made. Owner: one per thread, reused. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "decode/label_image.h"
#include "pipeline/annotation/annotations.h"
#include "pipeline/annotation/mask_plane.h"
#include "pipeline/annotation/motion.h"
#include "pipeline/annotation/pixel_map.h"

namespace stoker {

enum class MaskForm : uint8_t {
  bytes,  // (height, width), 0 or 1
  bits,   // (height, ceil(width / 8)), the leftmost pixel in the lowest bit
};

class MaskMover {
 public:
  // The masks of a picture of this size.
  void begin(Size source);
  // REQUIRES: the motion is known. Motions of objects alone change nothing.
  void move(const Movement& movement);
  Size size() const { return map_.size(); }  // after the motions

  // Makes the moved label image; `fill` is the label where there is nothing (255, for example).
  // `out`: size() pixels of the image's type, row-major without gaps. REQUIRES: the image has the
  // source's size.
  void make_labels(const LabelImage& image, int32_t fill, std::byte* out);
  // Makes the moved mask of an object; 0 where there is nothing, and for an object without a mask.
  // REQUIRES: the mask is of the source's size.
  void make_mask(const Annotations& annotations, const MaskShape& mask, MaskForm form,
                 std::byte* out);

 private:
  void draw(const Annotations& annotations, const MaskShape& mask);

  PixelMap map_;
  MaskPlane plane_;
  bool has_plane_ = false;  // of these motions
};

}  // namespace stoker
