// The metrics of a run: rates over steps, figures of several models together, and the files
// metrics.jsonl and metrics.csv with one row per logging interval (kind "step") and per epoch (kind
// "epoch"). Only metrics.jsonl has warnings (kind "warning"), the bytes that replicas exchange, per
// step and replica, and, of independent replicas, a row for each in an epoch (kind "replica") and
// how far the top-1 of all lie apart. Threads: one at a time.
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "train/train_types.h"

namespace stoker {

// Images per second as tf_cnn_benchmarks reports it: the median over steps, and its jitter, 1.4826
// times the median absolute deviation (for a normal distribution, the standard deviation).
struct Rate {
  double images_per_second = 0;
  double jitter = 0;
};

class RateMeter {
 public:
  // Keeps the last `window` steps; 0: all.
  RateMeter(int64_t images_per_step, size_t window)
      : images_per_step_(images_per_step), window_(window) {}
  void add(int64_t step_ns);
  void clear() { speeds_.clear(); }
  Rate rate() const;  // zeros before the first step

 private:
  int64_t images_per_step_;
  size_t window_;
  size_t next_ = 0;
  std::vector<double> speeds_;  // images/s of each step
};

// Removes torn lines and rows whose "step" is after `last_step` from a JSONL file: a killed run
// wrote them after the checkpoint from which the next run resumes. Does nothing if there is no
// file.
void trim_jsonl(const std::string& path, int64_t last_step);

class MetricsLog {
 public:
  // Appends to the files in `folder`, after removing torn lines and rows of steps after
  // `steps_done` (a run that was killed may have logged more than it saved). "" writes nothing. All
  // methods throw std::runtime_error with the path if a file cannot be written.
  MetricsLog(const std::string& folder, int64_t steps_done);
  void add(const StepReport& report);
  void add(const EpochReport& report);
  void add_warning(int64_t step, const std::string& text);

 private:
  using Row = std::vector<std::pair<const char*, std::string>>;
  void write(const Row& row);
  void write_json(const Row& row);

  std::string json_path_, csv_path_;
  std::ofstream json_, csv_;
};

// Returns the means over several models, those of independent replicas; samples and seconds are of
// one, the rate is of all.
EvalResult mean_of(std::span<const EvalResult> results);

// How a figure differs between replicas.
struct Spread {
  double mean = 0;
  double deviation = 0;  // standard deviation of a sample (n - 1); 0 of a single value
  double lowest = 0, highest = 0;
};
Spread spread_of(std::span<const double> values);  // REQUIRES: not empty
// Returns the spread of the replicas' top-1, if they were evaluated.
std::optional<Spread> top1_spread(std::span<const ReplicaFigures> replicas);

}  // namespace stoker
