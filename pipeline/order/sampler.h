// Maps row r of step s on replica d to a sample: a pure function, O(1) per row. The order of an
// epoch is a SampleOrder's, and depends only on (seed, epoch, position). Position p in it
// goes to step p / global batch, global row p % global batch; replica d owns the global rows
// [d * rows, (d + 1) * rows). So the same global batch has the same samples in the same rows for
// any number of devices or ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "pipeline/sample_order.h"
#include "pipeline/step_shapes.h"
#include "staging/batch_layout.h"

namespace stoker {

enum class LastBatch : uint8_t {
  pad,   // repeat rows of the same global batch, in turn, with weight 0: every position once
  drop,  // leave the remainder of the epoch out
  wrap,  // fill up with the epoch's first positions, weight 1
  // For aspect buckets: what does not fill a step of its bucket goes into a step of a neighbour's
  // shape, at the end of the epoch. With the other policies each bucket has a last step.
  merge,
};
const char* to_string(LastBatch policy);  // "pad"

// An epoch that another global batch began: its step `step` is at `position` of the order, because
// the positions before that came in other batches.
struct EpochGrid {
  int64_t epoch = -1;  // -1: none
  int64_t step = 0;    // in the epoch
  int64_t position = 0;
  std::vector<int64_t>
      taken{};  // of aspect buckets: the positions of each; their sum is `position`
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
  SharedBuckets buckets{};  // instead of `order`; null: steps are not of buckets
  std::shared_ptr<const ShapeSchedule> shapes{};  // of steps without buckets; null: one for all
};

struct SampledRow {
  SampleId id = 0;
  float weight = 1.0f;
  uint64_t repeat_index = 0;  // as in OrderedSample
};

class BucketSteps;

class Sampler {
 public:
  // Throws std::invalid_argument with the numbers: no samples, rows or replicas < 1, `drop` with
  // less than one batch, `merge` without buckets, more than 2^40 samples, an order for another
  // number of samples, an order and no shuffle, buckets and an order or a schedule of shapes, a
  // grid that continue_at() does not give.
  explicit Sampler(const SamplerOptions& options);
  int64_t steps_per_epoch() const;
  // A key that was made for the same epoch by another sampler does not do.
  EpochKey key(int64_t epoch) const;
  SampledRow row(const EpochKey& epoch, int64_t step_in_epoch, int replica, int row) const;
  SampledRow row(int64_t epoch, int64_t step_in_epoch, int replica, int row) const {
    return this->row(key(epoch), step_in_epoch, replica, row);
  }
  // Returns the position of the order that a row holds.
  int64_t position(const EpochKey& epoch, int64_t step_in_epoch, int replica, int row) const {
    return place(epoch, step_in_epoch, replica, row).position;
  }
  // Returns whether rows `row` and `row` ^ 1 hold neighbouring positions of the order, 2k and 2k +
  // 1: not the last position of an odd epoch, and no row that fills up the last batch. REQUIRES: an
  // even number of rows, and an even position of the options' grid. (In a step of a bucket: that
  // both hold a position of their own.)
  bool paired(const EpochKey& epoch, int64_t step_in_epoch, int replica, int row) const;
  // Returns how many positions of an epoch come before a step; of each bucket, if there are any.
  std::vector<int64_t> taken(int64_t epoch, int64_t step_in_epoch) const;
  // The sizes that steps have; empty: one for all, which the sampler does not know.
  const std::vector<Size>& sizes() const { return sizes_; }
  // The index in sizes() of a step's; 0 if there are none.
  int shape(const EpochKey& epoch, int64_t step_in_epoch) const;
  const SamplerOptions& options() const { return options_; }
  // The order of the options or, without one, that of the buckets or of `shuffle`.
  const SampleOrder& order() const { return *order_; }

 private:
  struct Place {
    int64_t position;
    float weight;
  };
  Place place(const EpochKey& epoch, int64_t step_in_epoch, int replica, int row) const;
  int64_t first_position(int64_t epoch, int64_t step_in_epoch) const;
  void check_grid();
  bool is_taken(const std::vector<int64_t>& taken) const;
  // Those of an epoch, and the number of its first step; REQUIRES: buckets.
  const BucketSteps& bucket_steps_of(int64_t epoch) const;
  int64_t first_step(int64_t epoch) const {
    return epoch == options_.grid.epoch ? options_.grid.step : 0;
  }
  SamplerOptions options_;
  SharedOrder order_;
  std::vector<Size> sizes_;
  int64_t global_batch_ = 0;  // rows * replicas
  // Steps of every epoch, and of that of the grid; null: no buckets, or no grid.
  std::shared_ptr<const BucketSteps> bucket_steps_, grid_steps_;
};

// Returns the steps of a feed that may end inside an epoch; the largest Step if it never ends
// (`epochs` < 0).
int64_t steps_of(double epochs, int64_t steps_per_epoch);

// Where a feed with this sampler goes on after positions of an epoch that came in batches of
// another size, as taken() counts them: at `step`, over all epochs. The epoch then ends with its
// usual last step, and every position comes once, as the policy of the last batch says. Without
// positions left for `drop` the next epoch begins.
struct Continuation {
  int64_t step = 0;
  EpochGrid grid{};
};
Continuation continue_at(const Sampler& sampler, int64_t epoch, const std::vector<int64_t>& taken);

}  // namespace stoker
