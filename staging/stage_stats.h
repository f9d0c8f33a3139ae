// Counters of one hand-off: how many items passed, how long each side waited for the other, how
// full it was. Threads: any; relaxed atomics, monotonic. snapshot() is consistent enough for
// reports, not for logic.
#pragma once

#include <atomic>
#include <cstdint>

namespace stoker {

struct StageSnapshot {
  int64_t items = 0;           // batches (or rows, if the stage says so) that were handed over
  int64_t input_wait_ns = 0;   // the consumer was blocked because there was nothing to take
  int64_t output_wait_ns = 0;  // the producer was blocked because there was no room
  int64_t service_ns = 0;      // time spent working, summed over threads
  int64_t occupancy_sum = 0;   // sum over items of how many were ready when one was taken
};

class StageStats {
 public:
  void add_item(int64_t occupancy = 0);
  void add_items(int64_t count);
  void add_input_wait(int64_t ns) { input_wait_ns_.fetch_add(ns, std::memory_order_relaxed); }
  void add_output_wait(int64_t ns) { output_wait_ns_.fetch_add(ns, std::memory_order_relaxed); }
  void add_service(int64_t ns) { service_ns_.fetch_add(ns, std::memory_order_relaxed); }
  StageSnapshot snapshot() const;

 private:
  std::atomic<int64_t> items_{0};
  std::atomic<int64_t> input_wait_ns_{0};
  std::atomic<int64_t> output_wait_ns_{0};
  std::atomic<int64_t> service_ns_{0};
  std::atomic<int64_t> occupancy_sum_{0};
};

int64_t steady_now_ns();

}  // namespace stoker
