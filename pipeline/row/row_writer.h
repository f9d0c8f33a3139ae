// Where a row lies in a slab, and the form that it has there: gives the places where its u8 pixels
// and its targets are made, and makes pixels final by their digest and the conversion to the slab's
// format. Owner: RowFiller. Threads: any, each row by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "pipeline/augment.h"
#include "pipeline/loader_types.h"
#include "pipeline/row/row_worker.h"
#include "pipeline/row/varying_columns.h"
#include "pipeline/source.h"
#include "staging/normalise.h"
#include "staging/pinned_ring.h"

namespace stoker {

class RowWriter {
 public:
  // The annotations and the varying columns outlive the writer.
  RowWriter(const Source& source, const AugmentSpec& augment, const LoaderOptions& options,
            const AnnotationColumns& annotations, const VaryingColumns& varying);

  size_t row_bytes() const { return row_bytes_; }  // u8 pixels of one row, all views
  int rows_together() const { return mixes_ ? 2 : 1; }
  // Sets worker.outs, .targets and .annotation_outs to the row's views, targets and annotations.
  void begin(RowWorker& worker, Slab& slab, int row) const;
  // Returns where the u8 pixels of one of the row's views are made.
  uint8_t* pixels(RowWorker& worker, const Slab& slab, int row, size_t view = 0) const;
  // Writes the columns of a mixed row. REQUIRES: rows are mixed.
  void set_mix(Slab& slab, int row, int32_t label, float weight) const;
  // Takes the digest of a row whose u8 pixels are final, and converts them.
  void finish(RowWorker& worker, Slab& slab, int row) const;
  // Copies finished rows of u8 pixels: row i of `made` becomes row first + i.
  void take(Slab& slab, int first, int count, const Slab& made) const;

 private:
  struct View {
    Size size;
    size_t row_bytes;                      // u8 pixels
    size_t stored_bytes;                   // in a slab
    std::optional<NormaliseArgs> convert;  // none: rows stay u8
    size_t scratch_offset;                 // of a row that is converted, in the worker's memory
  };
  static std::vector<View> views_of(const AugmentSpec& augment,
                                    const std::optional<RowFormat>& format);
  std::byte* stored_row(const Slab& slab, size_t view, int row, bool is_plain = false) const;
  static void convert(const View& view, const uint8_t* pixels, std::byte* out, int rows);

  const std::vector<View> views_;
  const size_t row_bytes_;
  const bool digests_, mixes_;
  const AnnotationColumns& annotations_;
  const VaryingColumns& varying_;
  // For a row: the source's columns, those of offsets, of annotations, and of mixing.
  std::vector<size_t> column_bytes_;
  size_t targets_ = 0;           // the source's columns
  size_t first_annotation_ = 0;  // behind those and the offsets
  size_t source_columns_ = 0;    // those and the annotations'
};

}  // namespace stoker
