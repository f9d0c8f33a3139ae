// The shape of a batch and the offsets of its parts in a slab; slab, slot and model all use these.
// A slab is one allocation: first the device part (images, labels, weights, targets, edits), which
// is copied to the device in one piece, then the host part (ids, notes, BatchHeader, and targets
// that the host reads), which stays on the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stoker {

using Step = int64_t;      // a batch's number, counted from 0 over all epochs
using SampleId = int64_t;  // 0 .. source.size() - 1

struct BatchShape {
  int rows = 0;    // fixed for every batch
  int height = 0;  // pixels
  int width = 0;   // pixels
  static constexpr int kChannels = 3;
  int note_bytes_per_row = 0;  // opaque host-side bytes per row (the pipeline's record of a row)
  int value_bytes = 1;         // per channel of a pixel: 1, or more if rows are converted
  std::vector<int> target_bytes{};     // per row, of each target column beside the labels
  std::vector<size_t> host_targets{};  // those of these columns that stay on the host, ascending
  bool edits = false;                  // whether the device edits the rows (staging/row_edits.h)
  bool operator==(const BatchShape&) const = default;
};

// Facts about a batch besides its rows. Host side.
struct BatchHeader {
  Step step = -1;  // over all epochs
  int64_t epoch = 0;
  int64_t step_in_epoch = 0;
  int valid = 0;  // rows with weight > 0
  // Pixels of this batch's rows, where the layout has room for larger ones; 0: the layout's.
  int height = 0;
  int width = 0;
  int shape = 0;         // the number of this size among those that batches have
  int64_t ready_ns = 0;  // steady clock, when the last row was committed
};

class BatchLayout {
 public:
  explicit BatchLayout(const BatchShape& shape);  // throws std::invalid_argument with the numbers

  const BatchShape& shape() const { return shape_; }
  size_t image_bytes() const;  // one row's pixels: height * width * 3 * value_bytes
  // The bytes of the images of a batch whose rows may be smaller than the layout's.
  size_t images_bytes(const BatchHeader& header) const;
  // Offsets from the start of a slab (and of a slot), each aligned to kAlignment.
  // The images are (rows, height, width, 3) u8 RGB, or the converted type.
  size_t images_offset() const { return 0; }
  size_t labels_offset() const;   // (rows) i32
  size_t weights_offset() const;  // (rows) f32
  // (rows, target_bytes[column]); in the host part if the column is one of host_targets
  size_t target_offset(size_t column) const;
  bool is_on_host(size_t column) const;
  size_t edits_offset() const;   // (rows) RowEdit, if the shape has them
  size_t device_bytes() const;   // all of the above, aligned: one copy
  size_t ids_offset() const;     // (rows) i64; the host part begins here
  size_t notes_offset() const;   // (rows, note_bytes_per_row) bytes
  size_t header_offset() const;  // one BatchHeader; the host's targets follow it
  size_t slab_bytes() const;     // the whole slab

  static constexpr size_t kAlignment = 256;

 private:
  size_t target_bytes(size_t column) const;  // of all rows

  BatchShape shape_;
};

}  // namespace stoker
