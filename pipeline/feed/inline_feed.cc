#include "pipeline/feed/inline_feed.h"

namespace stoker {

InlineFeed::InlineFeed(RowFiller& filler, std::vector<PinnedRing*> rings, SharedFiller* shared)
    : filler_(filler), shared_(shared), rings_(std::move(rings)), filled_(rings_.size(), -1) {
  for (size_t i = 0; i < rings_.size(); ++i) {
    workers_.push_back(std::make_unique<RowWorker>(filler));
  }
}

void InlineFeed::fill(Step step, int device) {
  if (filled_[device] == step) return;
  PinnedRing& ring = *rings_[device];
  if (!ring.wait_free(step)) return;
  Slab& slab = ring.begin(step);
  const BatchPosition position = filler_.position(step, device);
  try {
    if (shared_) {
      shared_->fill_batch(*workers_[device], slab, position, [&ring] { return ring.stopped(); });
    } else {
      filler_.fill(*workers_[device], slab, position, 0, ring.layout().shape().rows);
    }
    filler_.finish(slab, position);
  } catch (...) {
    for (PinnedRing* each : rings_) each->stop(std::current_exception());
  }
  ring.commit(step);
  filled_[device] = step;
}

}  // namespace stoker
