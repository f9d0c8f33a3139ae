// "What if" of a measured feed: the model of the feed as it is, and of the feed with a change. A
// prediction is the measured rate times the ratio of the two modelled rates, so that what the model
// leaves out cancels. It is never above the rate of the steps without their input, where that was
// measured.
#pragma once

#include "tools/profile/feed_model.h"
#include "tools/profile/run_measurements.h"

namespace stoker {

// How a feed was set up.
struct FeedShape {
  int rows = 0;  // in a device's batch
  int devices = 1;
  int workers = 1;
  int io_threads = 0;
  int ring_depth = 1;
  int slots = 0;
  bool zero_copy = true;
  bool on_gpus = false;
  double cores = 1;       // how many the process may use
  int machine_cores = 1;  // how many the machine has
};

// A change to a feed; the defaults change nothing.
struct FeedChange {
  // So many are added.
  int workers = 0, io_threads = 0, ring_depth = 0, slots = 0;
  bool storage_free = false;  // reads take only their CPU time
  bool fill_free = false;     // decode and pixel work take no time
  bool copy_free = false;     // the copy to the device takes no time
  bool step_free = false;     // the device takes no time
  bool undisturbed = false;   // no other program uses the cores
  double cores = 0;           // so many are added
  bool operator==(const FeedChange&) const = default;
};

// What the experiment with another number of workers measured: the CPU seconds that each got per
// second of work. 0 workers: not measured.
struct OtherWorkers {
  int workers = 0;
  double cpu_speed = 1;
};

class FeedWhatIf {
 public:
  // `bound`: the rate of the steps without input, rows/s; -1: not known.
  FeedWhatIf(const FeedShape& shape, const RunMeasurements& measured, double bound,
             const OtherWorkers& other = {});

  bool possible() const { return possible_; }  // was enough measured to model the feed?
  ModelledRun modelled(const FeedChange& change) const;
  // `waiting_share`: the share of a step that waits.
  struct Prediction {
    double rows_per_second = 0, waiting_share = 0;
  };
  Prediction predict(const FeedChange& change) const;
  // What the change brings of the modelled rate, relative: 0.2 is 20 %.
  double gain(const FeedChange& change) const;
  // How far the unchanged model's rate is off the measured one, relative.
  double model_error() const;
  double cpu_speed(const FeedChange& change) const;

  // The same with service times drawn anew from the measured ones, to see what is chance.
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
