// Small pinned rings between the host and a device engine: one sends arguments to the device, one
// returns step metrics. They block only if the host is kMetricsKept steps ahead or needs metrics
// that have not arrived. Owner: DeviceEngine. Threads: the engine's.
#pragma once

#include <array>
#include <memory>

#include "staging/device.h"
#include "train/device/types.h"

namespace stoker {

// The host writes the bytes in one call; work that is queued after it reads them.
class DeviceArgsRing {
 public:
  DeviceArgsRing(Device& device, Stream& stream, void* target, int64_t bytes);

  // Returns the host memory of the next upload. Waits only if all entries are still being copied.
  std::byte* begin();
  void upload();  // queues the copy of what was written to begin()

 private:
  struct Entry {
    std::unique_ptr<Event> copied;
    std::byte* data = nullptr;
  };
  Stream& stream_;
  void* const target_;
  const int64_t bytes_;
  std::unique_ptr<Memory> memory_;
  std::array<Entry, Engine::kMetricsKept> entries_;
  int64_t next_ = 0;
};

class DeviceMetricsRing {
 public:
  DeviceMetricsRing(Device& device, Stream& stream, const FiniteCheck* check);

  void fetch(int64_t update);                   // queues the copy; after the update was queued
  StepMetrics step_metrics_of(int64_t update);  // blocks until they have arrived

 private:
  Stream& stream_;
  const FiniteCheck* const check_;  // device
  std::unique_ptr<Memory> memory_;
  std::array<std::unique_ptr<Event>, Engine::kMetricsKept> there_;
};

}  // namespace stoker
