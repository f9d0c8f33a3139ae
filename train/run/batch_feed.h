// The batches of a replica, as TrainLoop takes them. They come from the Loader; a measurement may
// repeat batches that lie on the device already, or the last one (MeasureHooks). Owner: the
// replica's thread.
#pragma once

#include <vector>

#include "pipeline/loader.h"
#include "pipeline/measure_hooks.h"
#include "train/run/resident_batches.h"
#include "train/train_types.h"

namespace stoker {

class BatchFeed {
 public:
  // `stream` is the one to lease batches on; loader, stream and `resident` outlive it. `resident`
  // is null but for FeedKind::resident.
  BatchFeed(Loader& loader, int device, Stream& stream, const TrainOptions& options,
            const MeasureHooks& measure, ResidentBatches* resident)
      : loader_(loader),
        device_(device),
        stream_(stream),
        replay_(measure.replay),
        tracer_(options.tracer),
        kept_limit_(measure.feed == FeedKind::synthetic
                        ? static_cast<size_t>(options.slots < 1 ? 1 : options.slots)
                        : 0),
        resident_(resident) {}
  BatchFeed(const BatchFeed&) = delete;
  BatchFeed& operator=(const BatchFeed&) = delete;

  // Before the first batch; takes as long as decoding what is kept.
  void prepare() {
    if (resident_) resident_->stage(loader_, device_, stream_);
  }

  // Of `step`. Null at the end of the feed. Good until done(). Where the engine works outside the
  // stream, the batch is there when this returns (`wait`).
  const FedBatch* next(int64_t step, bool wait) {
    if (resident_) return &resident_->at(turn_++);
    if (current_) return &shown_;  // kept by done()
    if (kept_limit_ > 0 && kept_.size() == kept_limit_)
      return show(kept_[static_cast<size_t>(turn_++) % kept_limit_]);
    DeviceBatch batch = take(step);
    if (!batch) return nullptr;
    if (wait) {
      const SpanTimer timer(tracer_, SpanKind::copy_wait, step, device_);
      batch.synchronize();
    }
    if (kept_limit_ == 0) return show(current_ = std::move(batch));
    kept_.push_back(std::move(batch));
    return show(kept_.back());
  }

  // The batch's slot may be filled again, unless the next step is to see it too.
  void done() {
    if (!replay_ || !replay_->load()) current_ = {};
  }

 private:
  DeviceBatch take(int64_t step) {
    const SpanTimer timer(tracer_, SpanKind::input_wait, step, device_);
    return loader_.next(device_, stream_);
  }
  const FedBatch* show(const DeviceBatch& batch) {
    shown_ = fed(batch);
    return &shown_;
  }

  Loader& loader_;
  const int device_;
  Stream& stream_;
  const std::atomic<bool>* const replay_;  // or null
  Tracer* const tracer_;                   // or null
  const size_t kept_limit_;
  ResidentBatches* const resident_;
  DeviceBatch current_;
  std::vector<DeviceBatch> kept_;
  FedBatch shown_;
  int64_t turn_ = 0;
};

}  // namespace stoker
