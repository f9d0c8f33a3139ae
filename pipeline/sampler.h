// Maps row r of step s on replica d to a sample: a pure function, O(1) per row, no permutation in
// memory. The order of an epoch depends only on (seed, epoch, number of samples). Position p in it
// goes to step p / global batch, global row p % global batch; replica d owns the global rows
// [d * rows, (d + 1) * rows). So the same global batch has the same samples in the same rows for
// any number of devices or ranks.
#pragma once

#include <cstdint>

#include "staging/batch_layout.h"

namespace stoker {

enum class LastBatch : uint8_t {
  pad,   // repeat rows of the same global batch, in turn, with weight 0: every sample once
  drop,  // leave the remainder of the epoch out
  wrap,  // fill up with the epoch's first samples, weight 1
};
const char* to_string(LastBatch policy);  // "pad"

struct SamplerOptions {
  int64_t samples = 0;
  int rows = 0;      // per replica and step
  int replicas = 1;  // ranks * devices per rank
  uint64_t seed = 0;
  bool shuffle = true;
  LastBatch last_batch = LastBatch::pad;
};

struct SampledRow {
  SampleId id = 0;
  float weight = 1.0f;
};

// The keys of an epoch's order; made once for many rows.
struct EpochOrder {
  uint64_t add = 0, multiply = 0;
};

class Sampler {
 public:
  // Throws std::invalid_argument with the numbers: no samples, rows or replicas < 1, `drop` with
  // less than one batch, more than 2^40 samples.
  explicit Sampler(const SamplerOptions& options);
  int64_t steps_per_epoch() const;
  EpochOrder order(int64_t epoch) const;
  SampledRow row(const EpochOrder& order, int64_t step_in_epoch, int replica, int row) const;
  SampledRow row(int64_t epoch, int64_t step_in_epoch, int replica, int row) const {
    return this->row(order(epoch), step_in_epoch, replica, row);
  }
  const SamplerOptions& options() const { return options_; }
  // The keyed bijection of [0, samples) that orders an epoch.
  SampleId permute(const EpochOrder& order, int64_t position) const;
  SampleId permute(int64_t epoch, int64_t position) const {
    return permute(order(epoch), position);
  }

 private:
  SamplerOptions options_;
  int64_t global_batch_ = 0;  // rows * replicas
  int bits_ = 0;              // the fewest bits that hold every position
};

}  // namespace stoker
