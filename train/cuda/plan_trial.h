// Timing what runs on a stream: buffers for it, and milliseconds.
// Owner: CudaConvs, while it chooses a plan. Threads: one at a time; the stream's GPU is current.
// Errors: std::runtime_error, but for what trial_ms() runs.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace stoker {

// Buffers of zeros in a single piece of device memory, if there is any to spare. One lives while
// one pass is planned, not longer: the engine's own memory is measured and allocated right after
// the last one.
class PlanTrial {
 public:
  PlanTrial(cudaStream_t stream, const std::vector<int64_t>& sizes);
  ~PlanTrial();
  PlanTrial(const PlanTrial&) = delete;
  PlanTrial& operator=(const PlanTrial&) = delete;

  bool has_room() const { return memory_ != nullptr; }
  std::byte* at(size_t buffer) const { return static_cast<std::byte*>(memory_) + starts_[buffer]; }

 private:
  std::vector<int64_t> starts_{0};
  void* memory_ = nullptr;
};

// Milliseconds of one run: the best of some pairs of events with several runs between them, since
// one short kernel between two events would measure how fast the host queues. Gives up after one
// run that takes twice as long as `best`. Infinite if `run` throws.
float trial_ms(cudaStream_t stream, const std::function<void()>& run, float best);

}  // namespace stoker
