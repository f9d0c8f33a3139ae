// With or without the CUDA engine in this build: it is arithmetic, and a plan may be for elsewhere.
#include "train/cuda/engine.h"
#include "train/device/memory.h"

namespace stoker {

int64_t largest_cuda_batch(const NetSpec& net, const EngineOptions& options, int64_t bytes,
                           int64_t slot_bytes_per_row, int step) {
  return largest_device_batch(net, options, DeviceTuning{}, bytes, slot_bytes_per_row, step);
}

int64_t cuda_server_bytes(const NetSpec& net, const EngineOptions& replica, int others) {
  const DeviceEngineSizes sizes = planned_device_sizes(net, server_options(replica), {});
  return sizes.total() + others * sizes[DevicePiece::gradients];
}

}  // namespace stoker
