// A step of a run that is over, fed again: the rows of its global batch, of all replicas and
// processes, from the run's options and data. Steps are those of the run, counted from 0, as in
// receipts and messages. Owner: the caller. Threads: one. Errors: std::invalid_argument for a step
// that the run does not have, std::runtime_error with the path of a file that cannot be read.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pipeline/loader.h"
#include "pipeline/order/sampler.h"
#include "pipeline/receipt/receipt.h"
#include "pipeline/source/subset_source.h"
#include "train/run/step_log.h"
#include "train/train_types.h"

namespace stoker {

// Where the steps of a run are in its feed.
struct RunPlace {
  int64_t more_steps = 0;  // as TrainSetup::more_steps
  EpochGrid grid{};
  int64_t first_step = 0;  // earlier ones had another global batch
};
RunPlace place_of_run(const std::string& run);
// Returns the order of the rows of a run's global batches, by steps of its feed.
Sampler sampler_of(const TrainOptions& options, const RunPlace& place, int64_t samples);

class FedStep {
 public:
  // `options`: those of the run. `source` outlives it.
  FedStep(const Source& source, const TrainOptions& options, const RunPlace& place, int64_t step);
  FedStep(const FedStep&) = delete;
  FedStep& operator=(const FedStep&) = delete;

  const Source& source() const { return train_; }
  const DeviceBatch& batch() const { return batch_; }  // in host memory
  const std::vector<TargetColumn>& targets() const { return loader_->targets(); }
  int rows() const { return batch_.shape().rows; }
  uint64_t fingerprint() const { return loader_->fingerprint(); }
  StepRecord record() const;  // as a receipt has it

 private:
  SubsetSource train_;
  const std::unique_ptr<Device> device_;
  const std::unique_ptr<Stream> stream_;
  std::unique_ptr<Loader> loader_;
  DeviceBatch batch_;
};

// The words of a run's receipt on a step that was fed again.
struct ReceiptCheck {
  bool kept = false;  // the receipt has the step
  bool same = false;
  std::vector<int> changed{};  // rows that are not what they were, where the receipt has kept rows
  std::string text{};          // a sentence
};
ReceiptCheck check_receipt(const std::string& run, const FedStep& step, int64_t feed_step);

}  // namespace stoker
