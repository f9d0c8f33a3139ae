// What the spans of a profiled run say in numbers: how fast it went, where a step's time goes, how
// long each stage takes, who was busy, and the service times that FeedModel is driven by. Of the
// steps and rows that ended inside given windows; a pure function of a ProfiledRun. Seconds,
// unless a name says otherwise; -1 where nothing was measured.
#pragma once

#include <array>
#include <vector>

#include "tools/profile/gpu_load.h"
#include "tools/profile/latency.h"
#include "tools/profile/profiled_run.h"
#include "tools/profile/step_split.h"

namespace stoker {

struct SlowFile {
  SampleId sample = -1;
  Step step = -1;
  double read = 0, fill = 0;
};

// Steps that waited longer than they worked, where those are few and most of the waiting is theirs.
struct Pauses {
  int64_t count = 0;       // 0: the waiting, if any, is spread over the steps
  double mean_s = 0;       // of waiting
  double share = 0;        // of all waiting
  double burst_steps = 0;  // from one to the next, mean
};

struct RunMeasurements {
  double seconds = 0;  // of the windows
  int64_t steps = 0;
  double rows_per_second = 0;
  double spread = -1;  // of that between parts of the windows, relative: half of (p90 - p10) / p50
  StepSplit split;
  Pauses pauses;
  double evaluate_s = 0;  // in all of the run
  std::array<Latency, kSpanKinds> latency;
  std::vector<SlowFile> slowest;  // the worst first
  double slow_share = 0;          // of all read and fill time: of the slowest hundredth of the rows

  // For the model.
  std::vector<double> read_s, fill_cpu_s, copy_s, hold_s, rest_s;
  double cached_share = 0;  // of the files: workers read them from memory, as part of filling
  double pixels_share = 0;  // of the CPU time of filling
  double read_cpu_s = 0;    // CPU time of another read, mean

  // Who was busy, in threads or cores.
  double busy_workers = 0, busy_readers = 0;
  double worker_cpu_speed = 1;  // CPU seconds per second of work
  double own_cores = -1, other_cores = -1;
  double stolen_cores = -1;          // of the others': the hypervisor's, for other machines
  double consumer_delay_share = -1;  // of the time, the consumers' threads waited for a core
  double worker_delay_share = -1;    // and the workers', of the time they could have run
  double disk_share = -1;            // of the bytes read: from storage, not the page cache
  std::vector<GpuLoad> gpus;         // all of the machine
};

// `rows` of one device's batch.
RunMeasurements measure_run(const ProfiledRun& run, int rows,
                            const std::vector<PhaseWindow>& windows);

}  // namespace stoker
