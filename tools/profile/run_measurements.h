// The numbers of a profiled run, from its spans: its rate, where a step's time goes, how long each
// stage takes, who was busy, and the service times that drive FeedModel. Steps and rows that ended
// inside the given windows count. A pure function of a ProfiledRun. Seconds, unless a name says
// otherwise; -1 if not measured.
#pragma once

#include <array>
#include <vector>

#include "tools/profile/gpu_load.h"
#include "tools/profile/profiled_run.h"
#include "tools/profile/step_split.h"

namespace stoker {

// Statistics of many durations. Seconds; -1 if nothing was measured.
struct Latency {
  int64_t count = 0;
  double mean = -1, p50 = -1, p90 = -1, p99 = -1, max = -1;
  double cpu_mean = -1;  // CPU time; -1: not measured
};

Latency latency_of(std::vector<double> values);

struct SlowFile {
  SampleId sample = -1;
  Step step = -1;
  double read = 0, fill = 0;
};

// Steps that waited longer than they worked, if they are few and contain most of the waiting.
struct Pauses {
  int64_t count = 0;       // 0: the waiting, if any, is spread over the steps
  double mean_s = 0;       // mean wait of a pause
  double share = 0;        // share of all waiting that is in pauses
  double burst_steps = 0;  // mean number of steps from one pause to the next
};

struct RunMeasurements {
  double seconds = 0;  // of the windows
  int64_t steps = 0;
  double samples_per_second = 0;
  // Relative spread of the rate between parts of the windows: half of (p90 - p10) / p50.
  double spread = -1;
  StepSplit split;
  Pauses pauses;
  double evaluate_s = 0;  // in the whole run
  std::array<Latency, kSpanKinds> latency;
  std::vector<SlowFile> slowest;  // the worst first
  // The share of all read and fill time that the slowest hundredth of the rows takes.
  double slow_share = 0;

  // For the model. A row's filling includes what its worker does between two rows.
  std::vector<double> read_s, fill_cpu_s, copy_s, hold_s, rest_s;
  double cached_share = 0;  // share of the files that workers read from memory while they fill
  double pixels_share = 0;  // share of the CPU time of filling that is pixel work
  double read_cpu_s = 0;    // mean CPU time of a read by an I/O thread

  // Who was busy, in threads or cores.
  double busy_workers = 0, busy_readers = 0;
  double worker_cpu_speed = 1;  // CPU seconds per second of work, the waits between rows included
  double own_cores = -1, other_cores = -1;
  double worker_cores = -1;  // of own_cores: the workers' threads
  // Share of other_cores that the hypervisor gave to other machines, in cores.
  double stolen_cores = -1;
  // Share of the time in which the consumers' threads waited for a core.
  double consumer_delay_share = -1;
  // Share of their runnable time in which workers waited for a core.
  double worker_delay_share = -1;
  double disk_share = -1;     // share of the bytes read that came from storage, not the page cache
  std::vector<GpuLoad> gpus;  // all GPUs of the machine
  Energy energy;              // of the machine, in the windows
  double images() const { return seconds * samples_per_second; }
};

// `rows`: in one device's batch.
RunMeasurements measure_run(const ProfiledRun& run, int rows,
                            const std::vector<PhaseWindow>& windows);

}  // namespace stoker
