// The state of a training at one moment, which `stoker train --watch`, `stoker top` and
// --metrics-port show. A run writes it to live.json in its folder once a second. Values; any
// thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/machine/gpu_figures.h"
#include "train/trainer.h"

namespace stoker {

// The feed over the last interval.
struct FeedPace {
  double samples_per_second = 0;   // filled
  double busy_workers = 0;         // mean number
  double busy_io_threads = 0;      // likewise
  double sample_seconds = -1;      // of a worker, per row; -1: none was filled
  double read_seconds = -1;        // of an I/O thread, per file; -1: none was read
  double ready_batches = -1;       // in the ring when one was taken, mean of all devices; -1: none
  double consumer_wait_share = 0;  // share of the time in which the consumer of a ring waited; mean
  double ring_full_share = 0;      // share of the time in which a ring had no room; mean
};

struct LiveStatus {
  std::string run;  // "resnet18, 2 devices, batch 256"
  int64_t process = 0;
  double unix_seconds = 0;     // of this status
  double running_seconds = 0;  // since the run began
  bool ended = false;
  int workers = 0, io_threads = 0, ring_depth = 0;
  StepReport report;                        // the last one; `step` 0 before the first
  StageSnapshot read, cached_read, decode;  // since the run began
  std::vector<StageSnapshot> rings;         // likewise, per device
  int64_t bad_samples = 0;
  FeedPace pace;
  double cpu_seconds = 0;  // of the process, since it began
  double cpu_cores = 0;    // over the last interval
  int64_t resident_bytes = 0;
  int metrics_port = 0;  // on the loopback; 0: no server
  std::vector<GpuFigures> gpus;
  std::string no_gpus;  // why there are none
};

// A feed's counters at one moment.
struct FeedSample {
  double seconds = 0;  // steady clock
  LoaderStats stats;
  double cpu_seconds = 0;
};

// REQUIRES: both are of the same feed, and `later` was taken after `earlier`.
FeedPace pace_between(const FeedSample& earlier, const FeedSample& later);

inline constexpr const char* kLiveFile = "live.json";  // in a run's folder
// Throws std::invalid_argument with the path if there is no such file, std::runtime_error if it is
// damaged.
LiveStatus read_live_status(const std::string& run_folder);
void write_live_status(const std::string& run_folder, const LiveStatus& status);

// Returns the status in Prometheus' text format 0.0.4. Counters end in _total, units are seconds
// and bytes; a figure that is unknown has no sample.
std::string prometheus_text(const LiveStatus& status);

}  // namespace stoker
