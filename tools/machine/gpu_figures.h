// What a GPU is doing, from NVIDIA's management library (NVML), which is opened
// at run time: no header, no link, and nothing where there is no driver. Starts
// no context on a device.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "staging/cuda_driver.h"

namespace stoker {

struct GpuFigures {    // -1: the GPU does not say
  int index = 0;       // NVML's number, of all GPUs of the machine
  std::string cuda{};  // "cuda:0": as this process counts it; "": CUDA does not show it to it
  std::string name{};
  int busy_percent = -1;  // of the last second or less: a kernel ran
  int64_t memory_used_bytes = -1, memory_bytes = -1;
  int sm_clock_mhz = -1, sm_clock_max_mhz = -1;
  int64_t pcie_to_gpu_bytes_per_second = -1, pcie_from_gpu_bytes_per_second = -1;
};

inline constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";  // the driver's

// Owner: who looks. Threads: one at a time. The first read() starts the driver (cuInit) where NVML
// lists a GPU: CUDA_VISIBLE_DEVICES and CUDA's own order make cuda:0 any of them, and the PCI bus
// id says which.
class GpuMonitor {
 public:
  explicit GpuMonitor(const std::string& library = kNvmlLibrary,
                      const std::string& driver = kCudaDriver);
  ~GpuMonitor();
  GpuMonitor(const GpuMonitor&) = delete;
  GpuMonitor& operator=(const GpuMonitor&) = delete;

  const std::string& why_not() const;  // "" where it works
  std::vector<GpuFigures> read();      // of all GPUs

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
