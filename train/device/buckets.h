// Buckets: ranges of a gradient buffer that the backward pass completes one after the other, so
// that each is summed over the replicas while the rest is still being computed. They go through the
// flat buffer from its end, as the backward pass does; the last one ends with the pass. Pure;
// values.
#pragma once

#include <vector>

#include "train/collective/collective.h"
#include "train/device/types.h"
#include "train/graph/execution_plan.h"

namespace stoker {

struct DeviceBucket {
  BufferRange range;  // of the buffer; the first bucket also has the moments and metrics
  size_t begin_step = 0, end_step = 0;  // steps of the plan that complete the range
  int first_chunk = 0, chunks = 0;      // convolutions' chunks to cast to fp32
};

// The first bucket is small, so that communication starts early: PyTorch's DistributedDataParallel
// does the same, with the same sizes (1 MiB, then bucket_cap_mb = 25).
inline constexpr int64_t kFirstBucketBytes = int64_t{1} << 20;

// Returns buckets that cover all steps of a training plan and the whole buffer. A bucket is full
// when it has at least `bytes` of fp32 gradients; a tensor is never split. 0: one bucket, complete
// at the end.
std::vector<DeviceBucket> plan_buckets(const ExecutionPlan& plan, const GradientLayout& layout,
                                       int64_t bytes);

}  // namespace stoker
