// The record of every step of a run, for `stoker rewind`. Two files in its folder:
//   steps.bin       a StepRow per step
//   row_losses.bin  on request: per step its number (i64) and a RowLoss per row of the global batch
// Steps are those of the run, counted from 0. A run that resumes cuts both back to its checkpoint.
// Threads: one at a time. Errors: std::runtime_error with the path. No number in a file is trusted.
#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "train/engine/engine.h"

namespace stoker {

struct StepRow {
  int64_t step = 0;
  float loss_sum = 0, weight_sum = 0, top1 = 0;  // of all models together, as in StepMetrics
  float gradient_norm =
      0;  // not a number: the engine does not know it, or there are several models
  double loss() const { return loss_sum / weight_sum; }
  bool operator==(const StepRow&) const = default;
};

// A row's loss in 16 bits: the upper half of a float, with the sign set if the row was right (its
// top1 at least 0.5). Losses are never negative.
using RowLoss = uint16_t;
inline constexpr RowLoss kNoRowLoss = 0xffff;  // a row of weight 0
RowLoss to_row_loss(const RowResult& result);
struct KeptRow {
  float loss = 0;
  bool right = false;
};
std::optional<KeptRow> from_row_loss(RowLoss kept);  // nullopt: a row of weight 0

class StepLog {
 public:
  // Appends to the files in `folder`, after removing what is of steps from `first_step` on. `rows`:
  // of a global batch, or 0: their losses are not kept. "" writes nothing.
  StepLog(const std::string& folder, int64_t first_step, int64_t rows);
  void add(const StepRow& row, std::span<const RowLoss> rows);
  void flush();

 private:
  void write(std::ofstream& file, const std::string& path, std::span<const std::byte> bytes);

  std::string steps_path_, rows_path_;
  std::ofstream steps_, rows_;
};

// Returns the steps of a run that are in its folder; none if it kept none.
std::vector<StepRow> read_steps(const std::string& folder);

// Reads the losses of rows, step by step.
class RowLossFile {
 public:
  // `rows`: of a global batch.
  RowLossFile(const std::string& folder, int64_t rows);
  int64_t count() const { return count_; }  // of steps; 0: none were kept
  // Reads the `index`-th step, and returns its number.
  int64_t read(int64_t index, std::span<RowLoss> rows);
  // Finds a step; returns false if it was not kept.
  bool find(int64_t step, std::span<RowLoss> rows);

 private:
  std::string path_;
  std::ifstream file_;
  int64_t record_bytes_, count_ = 0;
};

// How far a step stands out from those around it.
struct Spike {
  int64_t step = 0;
  double loss = 0, gradient_norm = 0;
  double loss_score = 0, norm_score = 0;  // not a number where there is no norm
  double score() const;                   // the higher of both
};
// Returns the steps whose loss or gradient norm lies more than `threshold` deviations above the
// median of the steps around it, the worst first: Hampel's identifier (Hampel 1974, "The influence
// curve and its role in robust estimation"), one-sided. A deviation is 1.4826 times the median
// absolute deviation, and at least a fiftieth of the median. A step that is not finite comes first.
std::vector<Spike> find_spikes(std::span<const StepRow> steps, double threshold = 4);

}  // namespace stoker
