// The history of each sample over a run: from the losses of its rows (row_losses.bin) and the order
// in which they came. Steps before a change of the batch are left out. Threads: one. Errors:
// std::runtime_error with the path if the run kept no losses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/source.h"
#include "train/run/rewind.h"
#include "train/train_types.h"

namespace stoker {

struct SampleHistory {
  uint32_t seen = 0;       // rows that counted
  uint32_t right = 0;      // of them
  uint32_t forgotten = 0;  // it was right, and wrong when it came next
  bool was_right = false;  // when it came last
  double loss_sum = 0;
  double loss() const { return loss_sum / seen; }
  // It came in more than one epoch and was never right: a wrong label, most often.
  bool never_learned() const { return seen > 1 && right == 0; }
};

// Returns the history of each sample of `source`, which is the run's: Toneva et al. 2019, "An
// empirical study of example forgetting during deep neural network learning", with the losses
// besides.
std::vector<SampleHistory> sample_histories(const std::string& run, const TrainOptions& options,
                                            const RunPlace& place, int64_t samples);

}  // namespace stoker
