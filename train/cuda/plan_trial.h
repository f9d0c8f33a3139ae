// Times a convolution's plans on a stream, and our pass over the output that a fused plan saves;
// allocates buffers for it. Owner: CudaConvs, while it chooses a plan.
// Threads: one at a time; the stream's GPU is current. Errors: std::runtime_error, except from the
// work that trial_ms() runs.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "train/device/ops.h"

namespace stoker {

// Buffers of zeros in one allocation of device memory, if there is enough. Keep it only while one
// pass is planned: the engine measures and allocates its own memory right after the last pass.
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

// Returns the milliseconds of one run: the best of some pairs of events with several runs between
// them, because a single short kernel between two events would measure how fast the host queues.
// Stops after one run that takes more than twice as long as `best`. Returns infinity if `run`
// throws.
float trial_ms(cudaStream_t stream, const std::function<void()>& run, float best);

// Returns the bytes of a, b and out, in the order of DeviceConv::run().
std::vector<int64_t> operand_bytes(const ConvShape& shape, ConvPass pass);

// The pass over the output that a batch norm makes if the convolution has not summed it. `scratch`
// must be zero at first.
int64_t sum_pass_scratch_bytes(const ConvShape& shape);
void queue_sum_pass(cudaStream_t stream, const ConvShape& shape, const void* y, std::byte* scratch);
// Returns its milliseconds; 0 if there is no memory to time it.
float sum_pass_ms(cudaStream_t stream, const ConvShape& shape);

}  // namespace stoker
