// The feeder without threads: fills a batch in the caller's thread. The plain twin of FeedGraph; a
// test holds their batches equal. Owner: Loader. Threads: one per device at a time; stop() is the
// rings' own.
#pragma once

#include <memory>
#include <vector>

#include "pipeline/row_filler.h"
#include "staging/pinned_ring.h"

namespace stoker {

class InlineFeed {
 public:
  // filler and rings (one per device) must outlive the feed.
  InlineFeed(RowFiller& filler, std::vector<PinnedRing*> rings);
  InlineFeed(const InlineFeed&) = delete;
  InlineFeed& operator=(const InlineFeed&) = delete;

  // Fills and commits the slab of `step`, unless that was the call before: its consumer's stream
  // would not have it, and it is asked for again. An error of the environment stops the rings with
  // it.
  void fill(Step step, int device);

 private:
  RowFiller& filler_;
  const std::vector<PinnedRing*> rings_;
  std::vector<std::unique_ptr<RowWorker>> workers_;  // one per device, as below
  std::vector<Step> filled_;                         // the last one; -1: none
};

}  // namespace stoker
