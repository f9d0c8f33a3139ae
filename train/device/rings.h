// Small pinned rings between the host and a device engine: arguments on their way to the device,
// step metrics on their way back. Neither blocks unless the host is kTotalsKept steps ahead or asks
// for metrics that are not there yet. Owner: DeviceEngine. Threads: the engine's.
#pragma once

#include <array>
#include <memory>

#include "staging/device.h"
#include "train/device/types.h"

namespace stoker {

// Bytes written by the host in one call, read by work queued after it.
class DeviceArgsRing {
 public:
  DeviceArgsRing(Device& device, Stream& stream, void* target, int64_t bytes);

  // The host's side of the next upload: wait-free unless all entries are still on their way.
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
  std::array<Entry, Engine::kTotalsKept> entries_;
  int64_t next_ = 0;
};

class DeviceMetricsRing {
 public:
  DeviceMetricsRing(Device& device, Stream& stream, const UpdateVerdict* verdict);

  void fetch(int64_t update);            // queues the copy; after the update was queued
  StepTotals totals_of(int64_t update);  // blocks until it is there

 private:
  Stream& stream_;
  const UpdateVerdict* const verdict_;  // device
  std::unique_ptr<Memory> memory_;
  std::array<std::unique_ptr<Event>, Engine::kTotalsKept> there_;
};

}  // namespace stoker
