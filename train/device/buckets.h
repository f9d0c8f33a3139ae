// Buckets: ranges of a part that the backward pass completes one after the other, so that each is
// summed over the replicas while the rest is still computed. They follow the flat buffer from its
// end, as the backward pass does; the last one ends with the pass. Pure; values.
#pragma once

#include <vector>

#include "train/device/tape.h"

namespace stoker {

struct DeviceBucket {
  PartRange range;  // of the part; the first bucket has the moments and totals too
  size_t begin_step = 0, end_step = 0;  // of the tape: after these the range is complete
  int first_chunk = 0, chunks = 0;      // of DeviceLayout::chunks(true): what bf16 widens
};

// The first bucket is small, so that communication starts early: PyTorch's DistributedDataParallel
// does the same, with the same sizes (1 MiB, then bucket_cap_mb = 25).
inline constexpr int64_t kFirstBucketBytes = int64_t{1} << 20;

// A bucket is full when it holds `bytes` of fp32 gradients or more; a tensor is never cut. 0: one
// bucket, complete at the end. Covers all steps of a training tape and all of the part.
std::vector<DeviceBucket> plan_buckets(const DeviceTape& tape, const DeviceLayout& layout,
                                       int64_t bytes);

}  // namespace stoker
