// The state of a GPU, from NVIDIA's management library (NVML), which is opened at run time: there
// is no header and no link dependency, and without a driver there are no figures. Creates no
// context on a device.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "staging/cuda_driver.h"

namespace stoker {

inline constexpr int kNvmlSuccess = 0;
inline constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";  // part of the driver

// The library. A user declares the functions that it needs. Threads: one at a time.
class NvmlLibrary {
 public:
  explicit NvmlLibrary(const std::string& file = kNvmlLibrary);
  ~NvmlLibrary();  // shuts down what start() began; the library stays loaded
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;

  // Sets `function` to the symbol of this name; returns false if there is none.
  template <typename Function>
  bool find(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(symbol(name));
    return function != nullptr;
  }
  // Initialises the library; `found`: all functions that are needed exist. Returns false if that
  // fails; why_not() has the reason.
  bool start(bool found);
  const std::string& why_not() const { return why_not_; }

 private:
  void* symbol(const char* name) const;

  const std::string file_;
  void* const handle_;
  bool started_ = false;
  std::string why_not_;
};

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
