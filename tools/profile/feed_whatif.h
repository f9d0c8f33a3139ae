// "What if" of a measured feed: the model of it, and the model of it changed. Predictions are the
// measured rate times the ratio of two modelled ones, so that what the model leaves out cancels,
// and never above what the step takes without its input, where that was measured.
#pragma once

#include "tools/profile/feed_model.h"
#include "tools/profile/run_measurements.h"

namespace stoker {

// How a feed was set up.
struct FeedShape {
  int rows = 0;  // of a device's batch
  int devices = 1;
  int workers = 1;
  int io_threads = 0;
  int ring_depth = 1;
  int slots = 0;
  bool zero_copy = true;
  bool on_gpus = false;
  double cores = 1;       // that the process may use
  int machine_cores = 1;  // that the machine has
};

// A change to it; the defaults change nothing.
struct FeedChange {
  int workers = 0, io_threads = 0, ring_depth = 0, slots = 0;  // added
  bool storage_free = false;  // reads take what they cost in CPU time
  bool fill_free = false;     // decode and pixel work take no time
  bool copy_free = false;
  bool step_free = false;    // the device takes no time
  bool undisturbed = false;  // nobody else uses the cores
  double cores = 0;          // added
  bool operator==(const FeedChange&) const = default;
};

// The CPU time that each worker got with another number of them, CPU seconds per second of work;
// 0 workers: not measured.
struct OtherWorkers {
  int workers = 0;
  double cpu_speed = 1;
};

class FeedWhatIf {
 public:
  // Of a measured run, and of what its steps take without input (rows/s; -1: not known).
  FeedWhatIf(const FeedShape& shape, const RunMeasurements& measured, double bound,
             const OtherWorkers& other = {});

  bool possible() const { return possible_; }  // enough was measured to model it
  ModelledRun modelled(const FeedChange& change) const;
  // Rows per second, and the share of the step that waits.
  struct Prediction {
    double rows_per_second = 0, waiting_share = 0;
  };
  Prediction predict(const FeedChange& change) const;
  double gain(const FeedChange& change) const;  // of the modelled rate, relative: 0.2 is 20 %
  double model_error() const;                   // of the unchanged model's rate, relative
  double cpu_speed(const FeedChange& change) const;

  // The same with service times drawn anew from those measured, to see what is chance.
  FeedWhatIf resampled(uint64_t seed) const;

 private:
  FeedModel changed(const FeedChange& change) const;
  double shared_speed(double workers, double cores) const;
  double extrapolated_speed(double workers) const;

  FeedShape shape_;
  RunMeasurements measured_;
  double bound_;
  OtherWorkers other_;
  bool possible_;
  ModelledRun base_;
};

}  // namespace stoker
