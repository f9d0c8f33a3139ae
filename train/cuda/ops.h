// A device engine's operations on a GPU: own kernels, captured as CUDA graphs, and what NVIDIA's
// libraries do behind CudaLibraries. Lives in the plugin. Owner and threads: as DeviceOps; the GPU
// becomes the calling thread's.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "train/device/ops.h"
#include "train/device/tuning.h"

namespace stoker {

// Convolutions and matrix products on a stream: cuDNN and cuBLASLt (libraries.h).
class CudaLibraries {
 public:
  virtual ~CudaLibraries() = default;
  virtual std::string name() const = 0;
  virtual std::unique_ptr<DeviceConv> make_conv(const ConvShape& s, bool backward) = 0;
  // As DeviceOps::linear and linear_backward, without the bias.
  virtual void linear(const LinearShape& s, const void* x, const void* weight, float* logits,
                      void* workspace) = 0;
  virtual void linear_weights(const LinearShape& s, const void* x, const void* dlogits,
                              float* dweight, void* workspace) = 0;
  virtual void linear_data(const LinearShape& s, const void* weight, const void* dlogits, void* dx,
                           void* workspace) = 0;
};

// The libraries' GPU is `ordinal`, their stream `stream`, which outlives the operations.
std::unique_ptr<DeviceOps> make_cuda_ops(int ordinal, cudaStream_t stream,
                                         std::unique_ptr<CudaLibraries> libraries);

}  // namespace stoker
