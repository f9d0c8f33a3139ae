// The samples of a feed, in the order in which its rows are read: step by step, device by device,
// row by row. For Source::look_ahead(). Owner: the look-ahead. Threads: one at a time.
#pragma once

#include <array>
#include <cstddef>

#include "pipeline/exchange/row_message.h"
#include "pipeline/exchange/shared_filler.h"
#include "pipeline/row/row_filler.h"
#include "pipeline/source.h"

namespace stoker {

class FeedSequence {
 public:
  // The feed has the batches [first_batch, end_batch) (BatchPosition::batch) of `rows` rows for
  // each of `devices`. `shared`: says which rows' samples are fetched here; null: those of all. The
  // filler and `shared` outlive it.
  FeedSequence(const RowFiller& filler, SharedFiller* shared, int devices, int rows,
               Step first_batch, Step end_batch)
      : filler_(filler),
        shared_(shared),
        devices_(devices),
        rows_(rows),
        first_(first_batch),
        end_(end_batch),
        batch_(first_batch) {}

  // Leaves out what SampleReader::decoded_rows() has.
  NextSample operator()(SampleId& id);

 private:
  NextSample advance(SampleId& id);
  NextSample next_range();

  const RowFiller& filler_;
  SharedFiller* const shared_;
  const int devices_, rows_;
  const Step first_, end_;
  // The samples after `range_`, unless rows are shared.
  Step batch_;
  int device_ = 0;
  RowRange range_;  // what is left of the rows that are looked at
  // The partners of the last row: the next is the number `partner_`.
  std::array<SampleId, kMaxPictures - 1> partners_ = RowNote::no_partners();
  size_t partner_ = 0;
};

}  // namespace stoker
