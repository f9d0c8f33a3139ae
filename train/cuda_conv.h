// Convolutions through cuDNN, one plan per pass and shape, kept and shared by all convolutions of
// that shape. This and cuda_cudnn.* are all that knows cuDNN.
// Owner: make_cuda_libraries(). Threads: one at a time; the stream's GPU is current. Errors:
// std::runtime_error.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "train/cuda_cudnn.h"
#include "train/device_tuning.h"

namespace stoker {

class CudaConvs {
 public:
  CudaConvs(cudaStream_t stream, const DeviceTuning& tuning);
  ~CudaConvs();
  CudaConvs(const CudaConvs&) = delete;
  CudaConvs& operator=(const CudaConvs&) = delete;

  // The convolution refers to this.
  std::unique_ptr<DeviceConv> make(const ConvShape& shape, bool backward);
  const ConvPlan& plan(const ConvShape& shape, ConvPass pass);
  void execute(const ConvPlan& plan, const void* a, const void* b, void* out, void* workspace);

 private:
  size_t fastest(const ConvShape& shape, ConvPass pass, const std::vector<ConvPlan>& plans);
  float time_of(const ConvPlan& plan, void* a, void* b, void* out, void* workspace);

  const cudaStream_t stream_;
  const DeviceTuning tuning_;
  cudnnHandle_t handle_ = nullptr;
  struct Entry {
    ConvShape shape;
    ConvPass pass;
    std::unique_ptr<ConvPlan> plan;
  };
  std::vector<Entry> plans_;
};

}  // namespace stoker
