// The samples of a feed, in the order in which its rows are read: step by step, device by device,
// row by row. For Source::look_ahead(). Owner: the look-ahead. Threads: one at a time.
#pragma once

#include "pipeline/row_filler.h"
#include "pipeline/source/source.h"

namespace stoker {

class FeedSequence {
 public:
  // The feed has the batches [first_batch, end_batch) (BatchPlace::batch) of `rows` rows for each
  // of `devices`. The filler outlives it.
  FeedSequence(const RowFiller& filler, int devices, int rows, Step first_batch, Step end_batch)
      : filler_(filler),
        devices_(devices),
        rows_(rows),
        first_(first_batch),
        end_(end_batch),
        batch_(first_batch) {}

  // Leaves out what RowFiller::decoded_rows() has.
  NextSample operator()(SampleId& id);

 private:
  NextSample advance(SampleId& id);

  const RowFiller& filler_;
  const int devices_, rows_;
  const Step first_, end_;
  Step batch_;
  int device_ = 0, row_ = 0;
};

}  // namespace stoker
