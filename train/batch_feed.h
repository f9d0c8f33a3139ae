// A replica's batches, as TrainLoop takes them: those of the Loader, or for a measurement some that
// lie on the device already, again and again. Owner: the replica's thread.
#pragma once

#include <vector>

#include "train/resident_batches.h"
#include "train/trainer.h"

namespace stoker {

class BatchFeed {
 public:
  // `stream` is the one to lease batches on; loader, stream and `resident` outlive it. `resident`
  // is null but for FeedKind::resident.
  BatchFeed(Loader& loader, int device, Stream& stream, FeedKind kind, int slots,
            ResidentBatches* resident)
      : loader_(loader),
        device_(device),
        stream_(stream),
        kept_limit_(kind == FeedKind::synthetic ? static_cast<size_t>(slots < 1 ? 1 : slots) : 0),
        resident_(resident) {}
  BatchFeed(const BatchFeed&) = delete;
  BatchFeed& operator=(const BatchFeed&) = delete;

  // Before the first batch; takes as long as decoding what is kept.
  void prepare() {
    if (resident_) resident_->stage(loader_, device_, stream_);
  }

  // Null at the end of the feed. Good until done(). Where the engine works outside the stream, the
  // batch is there when this returns (`wait`).
  const FedBatch* next(bool wait) {
    if (resident_) return &resident_->at(turn_++);
    if (kept_limit_ > 0 && kept_.size() == kept_limit_)
      return show(kept_[static_cast<size_t>(turn_++) % kept_limit_]);
    DeviceBatch batch = loader_.next(device_, stream_);
    if (!batch) return nullptr;
    if (wait) batch.synchronize();
    if (kept_limit_ == 0) return show(current_ = std::move(batch));
    kept_.push_back(std::move(batch));
    return show(kept_.back());
  }

  void done() { current_ = {}; }  // its slot may be filled again

 private:
  const FedBatch* show(const DeviceBatch& batch) {
    shown_ = fed(batch);
    return &shown_;
  }

  Loader& loader_;
  const int device_;
  Stream& stream_;
  const size_t kept_limit_;
  ResidentBatches* const resident_;
  DeviceBatch current_;
  std::vector<DeviceBatch> kept_;
  FedBatch shown_;
  int64_t turn_ = 0;
};

}  // namespace stoker
