// The output of `stoker dump` for a batch: one .npy file each for images, labels, weights and
// targets, and a line of JSON per row. Stateless. Throws std::runtime_error with the path.
#pragma once

#include <array>
#include <string>

#include "pipeline/loader.h"
#include "pipeline/source/source.h"

namespace stoker {

// Returns the part of the source image that a row shows, as x, y, width, height in source pixels.
// They are whole numbers for random_resized; for other crops they describe the window of the
// resized image, may be fractions, and with pad_random may reach over the edge.
std::array<double, 4> source_crop(const AugmentDraw& draw);

// Writes images_00000.npy (rows, height, width, 3) u1; labels_00000.npy (rows) i4;
// weights_00000.npy (rows) f4; and target_NAME_00000.npy (rows, ...) for each of the source's
// targets, with "_" for a "/" in its name. REQUIRES: the batch's device is host-accessible and the
// copy to it has finished.
void write_batch_files(const std::string& folder, const Source& source, const DeviceBatch& batch);

// Returns one JSON object per row, each followed by a newline.
std::string rows_jsonl(const Source& source, const DeviceBatch& batch);

}  // namespace stoker
