// The entry of libstoker_cuda_train.so.
#include "train/cuda/train_plugin.h"

#include "train/cuda/fusion_times.h"
#include "train/cuda/kernels.h"
#include "train/cuda/libraries.h"

extern "C" __attribute__((visibility("default"))) const stoker::CudaTrainPlugin*
stoker_cuda_train_plugin() {
  static const stoker::CudaTrainPlugin plugin = {
      stoker::kCudaTrainPluginVersion, STOKER_BUILD_STAMP,
      [](int ordinal, void* stream, const stoker::DeviceTuning& tuning) {
        const auto on = static_cast<cudaStream_t>(stream);
        stoker::cuda::check(cudaSetDevice(ordinal), "cudaSetDevice");
        return stoker::make_cuda_ops(ordinal, on, stoker::make_cuda_libraries(on, tuning));
      },
      [](int ordinal, void* stream, const stoker::DeviceTuning& tuning,
         std::span<const stoker::ConvShape> shapes) {
        stoker::cuda::check(cudaSetDevice(ordinal), "cudaSetDevice");
        return stoker::time_fusions(static_cast<cudaStream_t>(stream), tuning, shapes);
      }};
  return &plugin;
}
