// Provides TrainLoop with the batches of a replica. They come from the Loader; a measurement may
// repeat batches that are already on the device, or the last one (MeasureHooks).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pipeline/loader.h"
#include "pipeline/measure_hooks.h"
#include "train/engine/engine.h"
#include "train/train_types.h"

namespace stoker {

// A batch as the trainer uses it, leased or resident.
struct FedBatch {
  BatchRows rows;                 // device
  const SampleId* ids = nullptr;  // host, as all below
  const RowNote* notes = nullptr;
  BatchHeader header;
};

FedBatch fed(const DeviceBatch& batch);  // valid while `batch` is leased

// The first batches of a run, staged on a device once and replayed, to measure a step without its
// input. Their augmentation stays as it was when they were staged. Owner: TrainSetup, one per
// replica. Threads: the replica's.
class ResidentBatches {
 public:
  // Allocates device memory for `count` batches. Throws std::runtime_error with the numbers if
  // there is too little memory.
  ResidentBatches(Device& device, const BatchShape& shape, int64_t count);

  int64_t count() const { return static_cast<int64_t>(batches_.size()); }
  int64_t device_bytes() const { return count() * batch_bytes(shape_); }
  static int64_t batch_bytes(const BatchShape& shape);  // of device memory

  // Copies the next count() batches of the loader's `device`. Blocks until that is done. Throws
  // std::runtime_error if the feed ends too early.
  void stage(Loader& loader, int device, Stream& stream);
  const FedBatch& at(int64_t turn) const { return batches_[static_cast<size_t>(turn % count())]; }

 private:
  void copy(const DeviceBatch& batch, int64_t index, Stream& stream);

  const BatchShape shape_;
  std::unique_ptr<Memory> memory_;
  std::vector<FedBatch> batches_;
  std::vector<SampleId> ids_;  // of all batches
};

// Owner: the replica's thread.
class BatchFeed {
 public:
  // Batches are leased on `stream`. Loader, stream and `resident` must outlive this object.
  // `resident` is null except for FeedKind::resident.
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

  // Call it before the first batch. Takes as long as decoding the resident batches.
  void prepare() {
    if (resident_) resident_->stage(loader_, device_, stream_);
  }

  // Returns the batch of `step`, valid until done(), or null at the end of the feed. With `wait` it
  // blocks until the batch is on the device, for engines that do not work on the stream.
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

  // Gives the batch's slot back, unless the next step uses the same batch.
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
