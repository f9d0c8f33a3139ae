// Trains the steps of a run once more, from its newest checkpoint before a step on, and says which
// rows of that step carry its loss and its gradient, and what it would have been without some.
// The steps before are a resumed run in a folder of its own, so that bits are those of the run
// wherever a resumed run has them; the step itself is computed on the CPU in micro-batches of the
// run's, with one row's weight or another's at 0: batch norms see all rows, as they did.
// Owner and threads: the caller's one. Errors: std::invalid_argument for a run whose steps are not
// of one model with batch norms of its own; what Trainer throws.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "train/run/rewind.h"
#include "train/train_types.h"

namespace stoker {

// A row of a step, as it counted.
struct RowShare {
  int row = 0;
  RowResult result{};
  double loss = 0;  // its share of the step's loss
  // Its part of the gradient, projected on the whole: the parts of all rows add up to 1. Not a
  // number: it was not computed, or the gradient is not finite.
  double gradient = 0;
};

struct StepOutcome {
  std::vector<int> without{};  // rows that were left out
  double loss = 0, gradient_norm = 0;
  double loss_after = 0;  // of the rows that no outcome leaves out, after the update
};

struct Replay {
  std::string from;        // the checkpoint; "": the run's beginning
  int64_t first_step = 0;  // of those that were trained again
  // Whether all of them had the pixels and the losses of the run, as far as it has kept them.
  int64_t compared = 0;
  std::string difference{};             // "": they had
  std::vector<RowShare> rows{};         // that count, by their loss, the highest first
  std::vector<StepOutcome> outcomes{};  // as it was, and without each group of rows
};

// `options`: the run's, with the number of its replicas, and with threads to use; `run`: its
// folder. Computes the parts of the gradient of the `parts` rows with the highest loss.
Replay replay_step(const FedStep& step, const TrainOptions& options, const std::string& run,
                   const RunPlace& place, int64_t number, const Source& source,
                   std::span<const std::vector<int>> without, int parts);

}  // namespace stoker
