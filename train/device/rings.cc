#include "train/device/rings.h"

#include <cstring>

#include "train/graph/execution_plan.h"

namespace stoker {
namespace {

constexpr int64_t kEntries = Engine::kMetricsKept;
constexpr int64_t kLine = 256;  // entries start at multiples of this

int64_t entry_bytes(int64_t bytes) { return round_up(bytes, kLine); }

}  // namespace

DeviceArgsRing::DeviceArgsRing(Device& device, Stream& stream, void* target, int64_t bytes)
    : stream_(stream),
      target_(target),
      bytes_(bytes),
      memory_(
          device.allocate(static_cast<size_t>(entry_bytes(bytes) * kEntries), MemoryKind::pinned)) {
  for (int64_t i = 0; i < kEntries; ++i) {
    entries_[i] = {device.make_event(), memory_->data() + i * entry_bytes(bytes)};
  }
}

std::byte* DeviceArgsRing::begin() {
  Entry& entry = entries_[next_ % kEntries];
  entry.copied->synchronize();
  return entry.data;
}

void DeviceArgsRing::upload() {
  Entry& entry = entries_[next_++ % kEntries];
  stream_.copy(target_, entry.data, static_cast<size_t>(bytes_), CopyKind::host_to_device);
  stream_.record(*entry.copied);
}

DeviceMetricsRing::DeviceMetricsRing(Device& device, Stream& stream, const FiniteCheck* check)
    : stream_(stream),
      check_(check),
      memory_(device.allocate(static_cast<size_t>(entry_bytes(sizeof(FiniteCheck)) * kEntries),
                              MemoryKind::pinned)) {
  for (auto& event : there_) event = device.make_event();
}

void DeviceMetricsRing::fetch(int64_t update) {
  const int64_t entry = update % kEntries;
  stream_.copy(memory_->data() + entry * entry_bytes(sizeof(FiniteCheck)), check_,
               sizeof(FiniteCheck), CopyKind::device_to_host);
  stream_.record(*there_[entry]);
}

StepMetrics DeviceMetricsRing::step_metrics_of(int64_t update) {
  const int64_t entry = update % kEntries;
  there_[entry]->synchronize();
  FiniteCheck check;
  std::memcpy(&check, memory_->data() + entry * entry_bytes(sizeof check), sizeof check);
  return step_metrics_from(check.metrics, check.finite != 0);
}

}  // namespace stoker
