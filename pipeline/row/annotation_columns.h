// The columns of a batch that hold what lies on its pictures, after the augmentation: LoaderOptions
// ::annotations says in which form. n is max_objects; what lies behind a row's last object is 0,
// and -1 for labels, but masks there are not cleared.
//
//   boxes float32 (n, 4), labels int64 (n), area float32 (n), object_ids int64 (n), iscrowd uint8
//   (n), keypoints float32 (n, k, 3: x, y, visibility), masks uint8 (n, height, width or its bits),
//   object_count int32, image_id int64 (the data's number of the picture; -1: none), label_image
//   uint8 or int32 (height, width), picture_box int32 (x0, y0, x1, y1: the part of the row that
//   shows the picture and no padding behind it). On request, packed_X for boxes to keypoints, of
//   the same size: the objects of all rows, those of row r from object_offsets[r] int32 on.
//
// Owner: RowFiller. Threads: any, each row by one thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "decode/decode_status.h"
#include "decode/label_image.h"
#include "pipeline/annotation/annotations.h"
#include "pipeline/annotation/mask_mover.h"
#include "pipeline/augment/draws.h"
#include "pipeline/loader_types.h"
#include "staging/pinned_ring.h"

namespace stoker {

enum class AnnotationField : uint8_t {
  boxes,
  labels,
  area,
  object_ids,
  iscrowd,
  keypoints,
  masks,
  object_count,
  image_id,
  label_image,
  picture_box,
  packed,
  object_offsets,
};

struct AnnotationColumn {
  AnnotationField field;
  TargetColumn column;
  size_t packs = 0;  // of a packed one: the column whose objects it has
};

// Returns the columns, in the order of a batch; none if there are no annotations.
std::vector<AnnotationColumn> annotation_columns(const AnnotationInfo& info,
                                                 const AnnotationOptions& options, Size output);
// Throws InvalidField for options that cannot be, and for an augmentation that cannot move what the
// samples carry, or needs boxes that they do not have.
void check_annotations(const AnnotationInfo& info, const AnnotationOptions& options,
                       const AugmentSpec& augment);

// A thread's memory for the annotations of its current row.
struct AnnotationScratch {
  Annotations annotations;
  MaskMover masks;
  LabelImage labels;
  std::vector<int32_t> kept;  // places of the moved objects that the row has
};

class AnnotationColumns {
 public:
  AnnotationColumns(const AnnotationInfo& info, const AnnotationOptions& options, Size output,
                    int64_t max_pixels);

  bool any() const { return !columns_.empty(); }
  const std::vector<AnnotationColumn>& columns() const { return columns_; }
  int keypoints() const { return info_.keypoints; }
  const AnnotationOptions& options() const { return options_; }
  // Writes a row: the annotations that `draws` carry, moved as these say. `labels`: their label
  // image; null: it is read from their file. `outs`: a place for each column. A row with too many
  // objects is a status if the options say so.
  DecodeStatus write(const Annotations& carried, const LabelImage* labels,
                     AnnotationScratch& scratch, Draws& draws, std::span<std::byte* const> outs,
                     RowNote& note) const;
  // Writes a row without a picture.
  void write_nothing(std::span<std::byte* const> outs) const;
  // Packs the objects of a batch whose rows are complete. `first`: of these columns in the slab.
  void pack(Slab& slab, size_t first, int rows) const;
  // Returns a digest of a written row.
  uint64_t digest(std::span<std::byte* const> outs) const;
  // Rows that had more objects than max_objects, and the objects that were left out.
  int64_t full_rows() const { return full_rows_; }
  int64_t objects_left_out() const { return objects_left_out_; }

 private:
  // Which objects a row keeps: their places among the moved ones.
  DecodeStatus choose_objects(std::span<const AnnotatedObject> moved,
                              std::vector<int32_t>& kept) const;
  void write_box_of(const ObjectMover& moved, size_t from, float* out) const;
  void write_object(const ObjectMover& moved, size_t from, size_t place,
                    std::span<std::byte* const> outs) const;
  DecodeStatus write_labels(const Annotations& carried, const LabelImage* labels, Size source,
                            AnnotationScratch& scratch, std::byte* out) const;
  DecodeStatus write_masks(const Annotations& carried, AnnotationScratch& scratch, Draws& draws,
                           std::byte* out) const;
  std::byte* place_of(AnnotationField field, std::span<std::byte* const> outs) const;

  const AnnotationInfo info_;
  const AnnotationOptions options_;
  const int64_t max_pixels_;
  const std::vector<AnnotationColumn> columns_;
  mutable std::atomic<int64_t> full_rows_{0}, objects_left_out_{0};
};

}  // namespace stoker
