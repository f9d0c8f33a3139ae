// Reads what the machine's GPUs do from NVIDIA's management library at intervals, on its own
// thread. There is no thread if the library does not work or lists no GPU.
#pragma once

#include <thread>
#include <vector>

#include "staging/mutex.h"
#include "tools/machine/gpu_figures.h"

namespace stoker {

struct GpuReading {
  int64_t begin_ns = 0, end_ns = 0;  // steady clock: the library was read between them
  std::vector<GpuFigures> gpus;
};

struct GpuReadings {
  std::vector<GpuReading> readings{};  // in the order of time
  std::string no_gpus{};               // why there are none; "" if there are some
};

// Takes ten readings a second, and fewer if the library takes longer (the PCIe counters alone take
// about 20 ms per GPU and direction). Owner: the profiling session. Threads: its own.
class GpuSampler {
 public:
  explicit GpuSampler(const std::string& library = kNvmlLibrary,
                      const std::string& driver = kCudaDriver);
  ~GpuSampler();
  GpuSampler(const GpuSampler&) = delete;
  GpuSampler& operator=(const GpuSampler&) = delete;

  GpuReadings finish();  // call it once; waits for the current reading

 private:
  void watch();
  void stop();

  GpuMonitor gpus_;  // used by the watching thread, if there is one
  Mutex mutex_;
  CondVar ended_changed_;
  bool ended_ GUARDED_BY(mutex_) = false;
  GpuReadings readings_;  // used by the watching thread until it is joined
  std::jthread thread_;
};

}  // namespace stoker
