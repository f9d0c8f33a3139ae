// The state of a thread that fills rows: what it keeps between them, and which row it is at. Owner:
// whoever runs the thread. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "decode/memory_budget.h"
#include "pipeline/augment.h"
#include "pipeline/loader_types.h"
#include "pipeline/row/annotation_columns.h"
#include "pipeline/row/combined_row.h"
#include "pipeline/row/quarantine.h"
#include "pipeline/row/sample_reader.h"
#include "staging/pinned_ring.h"

namespace stoker {

class RowFiller;

// Reused, with its scratch.
struct RowWorker {
  explicit RowWorker(const RowFiller& filler);
  // Frees what has grown with the pictures so far.
  void free_scratch();
  const DecodeStatus* refusal() const;  // of the sample that it is at, or null

  const RowFiller& filler;
  MemoryLease lease;  // of the scratch, and of the buffers for files
  SampleId at = -1;   // the sample that is read or made
  struct Refused {
    SampleId id;
    DecodeStatus status;
  };
  std::vector<Refused> refused;  // of the rows at hand: need more memory than there is
  Augmenter augmenter;
  std::unique_ptr<CombinedRow> combined;  // null: rows are of one sample each
  SampleBuffer file;                      // the bytes of the current sample
  SampleBuffer next_file;                 // those of the sample after it, if both are read at once
  std::vector<uint8_t> pixels;         // of the current row or pair of rows, if they are converted
  std::vector<uint8_t> mix_scratch;    // of mix_rows()
  Draws erasing;                       // of draw_erasing()
  std::vector<MutableImageView> outs;  // the current row's views
  SampleTargets targets;               // of the current row
  AnnotationScratch annotated;         // of the current row's picture
  std::vector<std::byte*> annotation_outs;        // the current row's places of their columns
  std::vector<BadSample>* bad_samples = nullptr;  // where they go; null: to the quarantine
  bool is_plain = false;           // rows stay u8, in a slab of that form (row_message.h)
  std::vector<std::byte> message;  // of such rows, which others share
};

inline RowNote& note_of(Slab& slab, int row) { return reinterpret_cast<RowNote*>(slab.notes)[row]; }
inline const RowNote& note_of(const Slab& slab, int row) {
  return reinterpret_cast<const RowNote*>(slab.notes)[row];
}

}  // namespace stoker
