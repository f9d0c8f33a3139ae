#include "staging/stage_stats.h"

#include <chrono>

namespace stoker {

void StageStats::add_item(int64_t occupancy) {
  items_.fetch_add(1, std::memory_order_relaxed);
  occupancy_sum_.fetch_add(occupancy, std::memory_order_relaxed);
}

void StageStats::add_items(int64_t count) { items_.fetch_add(count, std::memory_order_relaxed); }

StageSnapshot StageStats::snapshot() const {
  StageSnapshot snapshot;
  snapshot.items = items_.load(std::memory_order_relaxed);
  snapshot.input_wait_ns = input_wait_ns_.load(std::memory_order_relaxed);
  snapshot.output_wait_ns = output_wait_ns_.load(std::memory_order_relaxed);
  snapshot.service_ns = service_ns_.load(std::memory_order_relaxed);
  snapshot.occupancy_sum = occupancy_sum_.load(std::memory_order_relaxed);
  return snapshot;
}

int64_t steady_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace stoker
