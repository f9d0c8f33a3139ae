// The work of a model's training step: how many gradients the backward pass completes
// when, and the largest batch in a GPU's memory. Pure functions; any thread. Errors:
// std::invalid_argument for a net that makes no sense.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/suite/schedule_simulation.h"
#include "train/model/net_spec.h"

namespace stoker {

// Returns the parts of the backward pass that complete a bucket, from the net's end to its begin,
// with buckets of the sizes of plan_buckets(). A node's time is taken to be in proportion to its
// multiply-adds, so batch norms and other operations take none. bucket_bytes 0: one bucket.
std::vector<BackwardPart> model_parts(const NetSpec& net, int64_t bucket_bytes);

// Returns the largest batch of a GPU that trains in bf16 with `memory_bytes`, of which the feed's
// slots take `slot_bytes_per_row` for each of its rows. 0 if not even one row fits.
int64_t largest_gpu_batch(const NetSpec& net, int64_t memory_bytes, double slot_bytes_per_row);

}  // namespace stoker
