// Maps row r of step s on replica d to a sample: a pure function, O(1) per row. The order of an
// epoch is a SampleOrder's, and depends only on (seed, epoch, position). Position p in it
// goes to step p / global batch, global row p % global batch; replica d owns the global rows
// [d * rows, (d + 1) * rows). So the same global batch has the same samples in the same rows for
// any number of devices or ranks.
#pragma once

#include <cstdint>

#include "pipeline/sample_order.h"
#include "staging/batch_layout.h"

namespace stoker {

enum class LastBatch : uint8_t {
  pad,   // repeat rows of the same global batch, in turn, with weight 0: every position once
  drop,  // leave the remainder of the epoch out
  wrap,  // fill up with the epoch's first positions, weight 1
};
const char* to_string(LastBatch policy);  // "pad"

// An epoch that another global batch began: its step `step` is at `position` of the order, because
// the positions before that came in other batches.
struct EpochGrid {
  int64_t epoch = -1;  // -1: none
  int64_t step = 0;    // in the epoch
  int64_t position = 0;
  bool operator==(const EpochGrid&) const = default;
};

struct SamplerOptions {
  int64_t samples = 0;
  int rows = 0;      // per replica and step
  int replicas = 1;  // ranks * devices per rank
  uint64_t seed = 0;
  bool shuffle = true;
  LastBatch last_batch = LastBatch::pad;
  EpochGrid grid{};
  SharedOrder order{};  // instead of `shuffle`, which must be true then; null: every sample once
};

struct SampledRow {
  SampleId id = 0;
  float weight = 1.0f;
  uint64_t repeat_index = 0;  // as in OrderedSample
};

class Sampler {
 public:
  // Throws std::invalid_argument with the numbers: no samples, rows or replicas < 1, `drop` with
  // less than one batch, more than 2^40 samples, an order for another number of samples, an order
  // and no shuffle, a grid that continue_at() does not give.
  explicit Sampler(const SamplerOptions& options);
  int64_t steps_per_epoch() const;
  EpochKey key(int64_t epoch) const { return {options_.seed, epoch}; }
  SampledRow row(const EpochKey& epoch, int64_t step_in_epoch, int replica, int row) const;
  SampledRow row(int64_t epoch, int64_t step_in_epoch, int replica, int row) const {
    return this->row(key(epoch), step_in_epoch, replica, row);
  }
  // Returns the position of the order that a row holds.
  int64_t position(int64_t epoch, int64_t step_in_epoch, int replica, int row) const {
    return place(epoch, step_in_epoch, replica, row).position;
  }
  // Returns whether rows `row` and `row` ^ 1 hold neighbouring positions of the order, 2k and 2k +
  // 1: not the last position of an odd epoch, and no row that fills up the last batch. REQUIRES: an
  // even number of rows, and an even position of the options' grid.
  bool paired(int64_t epoch, int64_t step_in_epoch, int replica, int row) const;
  // Returns the first position of a step.
  int64_t first_position(int64_t epoch, int64_t step_in_epoch) const;
  const SamplerOptions& options() const { return options_; }
  // The order of the options or, without one, that of `shuffle`.
  const SampleOrder& order() const { return *order_; }

 private:
  struct Place {
    int64_t position;
    float weight;
  };
  Place place(int64_t epoch, int64_t step_in_epoch, int replica, int row) const;
  void check_grid() const;
  SamplerOptions options_;
  SharedOrder order_;
  int64_t global_batch_ = 0;  // rows * replicas
};

// Returns the steps of a feed that may end inside an epoch; the largest Step if it never ends
// (`epochs` < 0).
int64_t steps_of(double epochs, int64_t steps_per_epoch);

// Where a feed with this sampler goes on after `position` positions of an epoch that came in
// batches of another size: at `step`, over all epochs. The epoch then ends with its usual last
// step, and every position comes once, as the policy of the last batch says. Without positions left
// for `drop` the next epoch begins.
struct Continuation {
  int64_t step = 0;
  EpochGrid grid{};
};
Continuation continue_at(const Sampler& sampler, int64_t epoch, int64_t position);

}  // namespace stoker
