// Asks NVIDIA's management library again and again what the machine's GPUs do, on a thread of its
// own. There is no thread where the library does not work or lists no GPU.
#pragma once

#include <thread>
#include <vector>

#include "staging/mutex.h"
#include "tools/machine/gpu_figures.h"

namespace stoker {

struct GpuReading {
  int64_t begin_ns = 0, end_ns = 0;  // steady clock: the library was asked between them
  std::vector<GpuFigures> gpus;
};

struct GpuReadings {
  std::vector<GpuReading> readings{};  // in the order of time
  std::string no_gpus{};               // why there are none; "" where there are some
};

// Takes ten readings a second, and fewer where the library takes longer (the PCIe counters alone
// take it about 20 ms per GPU and direction). Owner: the profiling session. Threads: its own.
class GpuSampler {
 public:
  explicit GpuSampler(const std::string& library = kNvmlLibrary,
                      const std::string& driver = kCudaDriver);
  ~GpuSampler();
  GpuSampler(const GpuSampler&) = delete;
  GpuSampler& operator=(const GpuSampler&) = delete;

  GpuReadings finish();  // once; waits for the reading under way

 private:
  void watch();
  void stop();

  GpuMonitor gpus_;  // the watching thread's, where there is one
  Mutex mutex_;
  CondVar ended_changed_;
  bool ended_ GUARDED_BY(mutex_) = false;
  GpuReadings readings_;  // the watching thread's until it is joined
  std::thread thread_;
};

}  // namespace stoker
