// The work of each GPU in given windows of a profiled run. A pure function of the readings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/profile/profiled_run.h"

namespace stoker {

// -1: the GPU does not report it. Means are over the readings that report a value.
struct GpuLoad {
  int index = 0;     // NVML's number among all GPUs of the machine
  std::string cuda;  // "cuda:0" if this process may use it
  std::string name;
  int64_t readings = 0;
  // Share of the time in which a kernel ran; each reading covers the second before it, or less.
  double busy_mean = -1, busy_least = -1, busy_most = -1;
  double sm_clock_mhz = -1;                           // mean
  double sm_clock_max_mhz = -1;                       // the highest that it can run at
  int64_t memory_used_bytes = -1, memory_bytes = -1;  // the highest use, and the size
  double pcie_to_gpu_bytes_per_second = -1, pcie_from_gpu_bytes_per_second = -1;  // means
};

// Uses the readings that lie wholly inside one of the windows. Returns the GPUs by index.
std::vector<GpuLoad> gpu_loads(const ProfiledRun& run, const std::vector<PhaseWindow>& windows);

}  // namespace stoker
