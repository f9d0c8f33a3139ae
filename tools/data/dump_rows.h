// What `stoker dump` writes of a batch: one .npy file each for images, labels and weights, and a
// line of JSON per row. Stateless. Errors: std::runtime_error with the path.
#pragma once

#include <array>
#include <string>

#include "pipeline/loader.h"
#include "pipeline/source/source.h"

namespace stoker {

// The part of the source image that a row shows, as x, y, width, height in source pixels. Whole
// numbers for random_resized; else what the window of the resized image covers, which may be
// fractions, and with pad_random may reach over the edge.
std::array<double, 4> source_crop(const AugmentDraw& draw);

// images_00000.npy (rows, height, width, 3) u1; labels_00000.npy (rows) i4; weights_00000.npy
// (rows) f4. REQUIRES: the batch's device is host-accessible and the batch is there.
void write_batch_files(const std::string& folder, const DeviceBatch& batch);

// One JSON object per row, each ended by a newline.
std::string rows_jsonl(const Source& source, const DeviceBatch& batch);

}  // namespace stoker
