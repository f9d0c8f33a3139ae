// Draws what lies on the pictures of a batch: frames and names of objects, their masks, keypoints
// and label images, each class in a colour of its own. Stateless. Threads: any.
#pragma once

#include <string>
#include <vector>

#include "pipeline/annotation/annotations.h"
#include "pipeline/target.h"
#include "staging/device_batch.h"
#include "tools/data/contact_sheet.h"

namespace stoker {

// Where a row's picture is on the sheet: its upper left corner, and sheet pixels per row pixel.
struct RowPlace {
  int x = 0, y = 0, scale = 1;
};

// `columns`: Loader::targets(). Boxes are xyxy, or xyxyxyxy if they are rotated; masks bits.
// REQUIRES: the batch's device is accessible to the host.
void draw_annotations(const AnnotationInfo& info, const std::vector<TargetColumn>& columns,
                      const DeviceBatch& batch, int row, RowPlace place, ContactSheet& sheet);

}  // namespace stoker
