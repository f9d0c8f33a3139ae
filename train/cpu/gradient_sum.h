// Adds up the gradients of a replica's micro-batches in one buffer, in the order of the
// micro-batches and while they are computed: the bits are those of a sum over a buffer for each.
// The first micro-batch writes into the buffer. The others write each layer's gradients into a
// scratch, and add them in a turn, which begins when the micro-batch before has ended its own turn
// of that layer. All micro-batches have the same turns in the same order. Owner: CpuEngine.
// Threads: one for each micro-batch that runs; they begin in ascending order, so that none waits
// for one that cannot run.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <vector>

namespace stoker {

class GradientSum {
 public:
  explicit GradientSum(int micro_batches) : turns_(static_cast<size_t>(micro_batches)) {}

  // Nobody has had a turn. REQUIRES: no micro-batch runs.
  void begin() {
    for (std::atomic<int>& turns : turns_) turns = 0;
  }

  class Turn {
   public:
    // Waits for the micro-batch before. `sum` may be null: each micro-batch has its own buffer.
    Turn(GradientSum* sum, int micro_batch) {
      if (sum == nullptr) return;
      own_ = &sum->turns_[static_cast<size_t>(micro_batch)];
      if (micro_batch == 0) return;
      const std::atomic<int>& before = sum->turns_[static_cast<size_t>(micro_batch) - 1];
      for (int had = before; had <= *own_; had = before) before.wait(had);
    }
    ~Turn() {
      if (own_ == nullptr) return;
      ++*own_;
      own_->notify_one();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    std::atomic<int>* own_ = nullptr;
  };

  // A micro-batch has failed: nobody waits for it. The sum is worth nothing.
  void give_up(int micro_batch) {
    std::atomic<int>& turns = turns_[static_cast<size_t>(micro_batch)];
    turns = std::numeric_limits<int>::max();
    turns.notify_one();
  }

 private:
  std::vector<std::atomic<int>> turns_;  // that each micro-batch has ended
};

inline void add_to(float* sum, const float* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sum[i] += values[i];
}

}  // namespace stoker
