// The feeder without threads: fills a batch in the caller's thread. It is the plain twin of
// FeedGraph; a test checks that their batches are equal. Owner: Loader. Threads: one per device at
// a time; stop() goes to the rings directly.
#pragma once

#include <memory>
#include <vector>

#include "pipeline/exchange/shared_filler.h"
#include "pipeline/row/row_filler.h"
#include "staging/pinned_ring.h"

namespace stoker {

class InlineFeed {
 public:
  // filler, rings (one per device) and `shared`, which may be null, must outlive the feed.
  InlineFeed(RowFiller& filler, std::vector<PinnedRing*> rings, SharedFiller* shared = nullptr);
  InlineFeed(const InlineFeed&) = delete;
  InlineFeed& operator=(const InlineFeed&) = delete;

  // Fills and commits the slab of `step`, unless the previous call did so: if the consumer's stream
  // did not take it, the caller requests it again. An error of the environment stops the rings with
  // it.
  void fill(Step step, int device);

 private:
  RowFiller& filler_;
  SharedFiller* const shared_;
  const std::vector<PinnedRing*> rings_;
  std::vector<std::unique_ptr<RowWorker>> workers_;  // one per device
  std::vector<Step> filled_;                         // the last step per device; -1: none
};

}  // namespace stoker
