// A device engine's operations on a GPU: our kernels, CUDA graphs, and NVIDIA's libraries through
// CudaLibraries. Part of the plugin. Owner and threads: see DeviceOps; every call makes the GPU
// current in its thread.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "train/device/ops.h"
#include "train/device/tuning.h"

namespace stoker {

// Convolutions and matrix products on a stream: cuDNN and cuBLASLt (train_plugin.cc).
class CudaLibraries {
 public:
  virtual ~CudaLibraries() = default;
  virtual std::string name() const = 0;
  virtual std::unique_ptr<DeviceConv> make_conv(const ConvShape& s, bool backward) = 0;
  // See DeviceOps::linear() and linear_backward(); these are without the bias.
  virtual void linear(const LinearShape& s, const void* x, const void* weight, float* logits,
                      void* workspace) = 0;
  virtual void linear_weights(const LinearShape& s, const void* x, const void* dlogits,
                              float* dweight, void* workspace) = 0;
  virtual void linear_data(const LinearShape& s, const void* weight, const void* dlogits, void* dx,
                           void* workspace) = 0;
};

// `libraries` must be on the GPU `ordinal` and on `stream`, which must outlive the operations.
std::unique_ptr<DeviceOps> make_cuda_ops(int ordinal, cudaStream_t stream,
                                         std::unique_ptr<CudaLibraries> libraries);

}  // namespace stoker
