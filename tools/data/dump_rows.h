// The output of `stoker dump` for a batch: one .npy file each for images, labels, weights and
// targets, and a line of JSON per row. Stateless. Throws std::runtime_error with the path.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "pipeline/loader.h"
#include "pipeline/row/packed_values.h"
#include "pipeline/source.h"

namespace stoker {

// Writes images_00000.npy (rows, height, width, 3) u1; labels_00000.npy (rows) i4;
// weights_00000.npy (rows) f4; and target_NAME_00000.npy (rows, ...) for each of `targets`, the
// columns of Loader::targets(), with "_" for a "/" in its name; of those that vary the values of
// all rows, one behind the other, and their offsets (rows + 1) i4. REQUIRES: the batch's device is
// host-accessible and the copy to it has finished.
void write_batch_files(const std::string& folder, std::span<const TargetColumn> targets,
                       const DeviceBatch& batch);

// Returns one JSON object per row, each followed by a newline. `augment`, `seed` and `decode` are
// the Loader's: what they draw for a row is drawn again. Rows of several samples have the others'
// ids as "partners". Mixed rows have a "mix" with the partner's sample id, the share of the row's
// own pixels and label, and the box of a CutMix. Texts among the `columns` are "texts", by name.
std::string rows_jsonl(const Source& source, const AugmentSpec& augment, uint64_t seed,
                       const DeviceBatch& batch, const DecodeOptions& decode,
                       std::span<const TargetColumn> columns);

// Returns the text of a row; with several that are each ended by a NUL, the first.
std::string_view row_text(const PackedValues& texts, int row);

}  // namespace stoker
