// "What if" for a measured feed: models the feed as it is, and with a change. A prediction is the
// measured rate times the ratio of the two modelled rates, so that what the model leaves out
// cancels. It is never above the rate of the steps without their input, if that was measured.
// With other devices (FeedChange::step_s) it is the modelled rate itself: their steps are given,
// and what the model leaves out is in the times of the rows instead.
#pragma once

#include "tools/profile/feed_model.h"
#include "tools/profile/run_measurements.h"

namespace stoker {

// The setup of a feed.
struct FeedShape {
  int rows = 0;  // in a device's batch
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

// A change to a feed; the defaults change nothing.
struct FeedChange {
  // Numbers to add.
  int workers = 0, io_threads = 0, ring_depth = 0, slots = 0;
  bool storage_free = false;  // reads take only their CPU time
  bool fill_free = false;     // decode and pixel work take no time
  bool copy_free = false;     // the copy to the device takes no time
  bool step_free = false;     // the device takes no time
  bool undisturbed = false;   // no other program uses the cores
  double cores = 0;           // to add
  // Other devices, of which each takes a batch in `step_s` seconds. 0: those that were measured.
  int rows = 0, devices = 0;  // in a device's batch; 0: as measured
  double step_s = 0;
  bool operator==(const FeedChange&) const = default;
};

// The experiment with another number of workers: the rate, and the CPU seconds that each got per
// second of work. 0 workers: not measured.
struct OtherWorkers {
  int workers = 0;
  double cpu_speed = 1;
  double samples_per_second = 0;
};

class FeedWhatIf {
 public:
  // `bound`: the rate of the steps without input, rows/s; -1: not known.
  FeedWhatIf(const FeedShape& shape, const RunMeasurements& measured, double bound,
             const OtherWorkers& other = {});

  const FeedShape& shape() const { return shape_; }
  bool possible() const { return possible_; }  // whether enough was measured to model the feed
  ModelledRun modelled(const FeedChange& change) const;
  struct Prediction {
    double samples_per_second = 0;
    double unbounded = 0;      // the same if the steps could be as fast as the feed
    double waiting_share = 0;  // of a step
  };
  Prediction predict(const FeedChange& change) const;
  // Returns the change's relative gain over the modelled rate: 0.2 is 20 %.
  double gain(const FeedChange& change) const;
  // Returns the relative error of the unchanged model's rate against the measured one.
  double model_error() const;
  double cpu_speed(const FeedChange& change) const;

  // Returns the same model with service times resampled from the measured ones, to see what is
  // chance.
  FeedWhatIf resampled(uint64_t seed) const;

 private:
  FeedModel changed(const FeedChange& change) const;
  double worker_cores() const;
  double own_rivals(double workers) const;
  double shared_speed(double workers, double cores) const;
  double extrapolated_speed(double workers) const;
  double ceiling(const FeedChange& change) const;

  FeedShape shape_;
  RunMeasurements measured_;
  double bound_;
  OtherWorkers other_;
  bool possible_;
  ModelledRun base_;
};

}  // namespace stoker
