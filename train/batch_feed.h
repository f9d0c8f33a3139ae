// A replica's batches, as TrainLoop takes them: those of the Loader, or for a measurement the first
// ones again and again. Owner: the replica's thread.
#pragma once

#include <vector>

#include "train/trainer.h"

namespace stoker {

class BatchFeed {
 public:
  // `stream` is the one to lease batches on; loader and stream outlive it.
  BatchFeed(Loader& loader, int device, Stream& stream, FeedKind kind, int slots)
      : loader_(loader),
        device_(device),
        stream_(stream),
        kept_limit_(kind == FeedKind::synthetic ? static_cast<size_t>(slots < 1 ? 1 : slots) : 0) {}
  BatchFeed(const BatchFeed&) = delete;
  BatchFeed& operator=(const BatchFeed&) = delete;

  // Null at the end of the feed. Good until done().
  const DeviceBatch* next() {
    if (kept_limit_ > 0 && kept_.size() == kept_limit_) return &kept_[turn_++ % kept_limit_];
    DeviceBatch batch = loader_.next(device_, stream_);
    if (!batch) return nullptr;
    if (kept_limit_ == 0) {
      current_ = std::move(batch);
      return &current_;
    }
    kept_.push_back(std::move(batch));
    return &kept_.back();
  }

  void done() { current_ = {}; }  // its slot may be filled again

 private:
  Loader& loader_;
  const int device_;
  Stream& stream_;
  const size_t kept_limit_;
  DeviceBatch current_;
  std::vector<DeviceBatch> kept_;
  size_t turn_ = 0;
};

}  // namespace stoker
