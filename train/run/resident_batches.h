// The first batches of a run, staged on a device once and replayed, to measure a step without its
// input. Their augmentation stays as it was when they were staged. Owner: TrainSetup, one per
// replica. Threads: the replica's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pipeline/loader.h"
#include "train/engine/engine.h"

namespace stoker {

// A batch as the trainer uses it, leased or resident.
struct FedBatch {
  BatchRows rows;                 // device
  const SampleId* ids = nullptr;  // host, as all below
  const RowNote* notes = nullptr;
  BatchHeader header;
};

FedBatch fed(const DeviceBatch& batch);  // valid while `batch` is leased

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

}  // namespace stoker
