// The state of a GPU, from NVIDIA's management library (NVML), which is opened at run time: there
// is no header and no link dependency, and without a driver there are no figures. Creates no
// context on a device.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "staging/cuda_driver.h"
#include "tools/machine/nvml_library.h"

namespace stoker {

struct GpuFigures {    // -1: the GPU does not report it
  int index = 0;       // NVML's number, of all GPUs of the machine
  std::string cuda{};  // "cuda:0" in this process; "": not visible to CUDA here
  std::string name{};
  int busy_percent = -1;  // share of the last second or less in which a kernel ran
  int64_t memory_used_bytes = -1, memory_bytes = -1;
  int sm_clock_mhz = -1, sm_clock_max_mhz = -1;
  int64_t pcie_to_gpu_bytes_per_second = -1, pcie_from_gpu_bytes_per_second = -1;
};

// Threads: one at a time. The first read() initialises the CUDA driver (cuInit) if NVML lists a
// GPU: CUDA_VISIBLE_DEVICES and CUDA's own order can make any of them cuda:0, and the PCI bus id
// tells which.
class GpuMonitor {
 public:
  explicit GpuMonitor(const std::string& library = kNvmlLibrary,
                      const std::string& driver = kCudaDriver);
  ~GpuMonitor();
  GpuMonitor(const GpuMonitor&) = delete;
  GpuMonitor& operator=(const GpuMonitor&) = delete;

  const std::string& why_not() const;  // "" if it works
  std::vector<GpuFigures> read();      // of all GPUs

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
