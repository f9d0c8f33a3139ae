// Finds targets that say where something is in the picture (boxes, keypoints, masks), and stages
// that move the pixels: targets stay as they are in the data, so that they are wrong then. A pure
// function. Threads: any.
#pragma once

#include <string>

#include "pipeline/augment.h"
#include "pipeline/source.h"

namespace stoker {

// Returns a sentence for users, or "" if nothing is wrong as far as can be told:
//
// - A target counts by the words of its name, with numbers enough to be meant so: box, boxes, bbox,
//   bboxes, bndbox, keypoint(s), kpt(s), landmark(s), polygon(s), xyxy, xywh, cxcywh, ltrb (two
//   numbers or more); point(s) (the last extent is 2 or 3); mask(s), segmentation, heatmap(s) (two
//   extents or more); xmin, ymin, xmax, ymax. Its shape alone says nothing: four numbers may be
//   four classes.
// - A stage counts if it was seen to crop, resize, pad, mirror, turn or warp some example image. A
//   program's own operations do not count.
// - A resize of the whole image leaves places right that are relative to it: where nothing else
//   moves pixels, numbers from 0 to 1 are fine, as far as the first samples and those between have
//   them.
std::string unmoved_targets(const Source& source, const AugmentSpec& augment);

}  // namespace stoker
