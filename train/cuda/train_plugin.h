// What libstoker_cuda_train.so gives the program: one C entry, stoker_cuda_train_plugin(), that
// returns this table. Program and plugin come from one build (the table holds C++ types): `build`
// says which, and a plugin of another one is refused. Threads: any.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "train/device/ops.h"
#include "train/device/tuning.h"

namespace stoker {

inline constexpr char kCudaTrainPluginFile[] = "libstoker_cuda_train.so";
inline constexpr char kCudaTrainPluginEntry[] = "stoker_cuda_train_plugin";
inline constexpr int kCudaTrainPluginVersion = 2;  // of this table

struct CudaTrainPlugin {
  int version = 0;              // kCudaTrainPluginVersion; first in every version of the table
  const char* build = nullptr;  // the build that it comes from
  // On the GPU of this ordinal (as cudaSetDevice counts) and this cudaStream_t, which outlives the
  // operations. Throws std::runtime_error.
  std::unique_ptr<DeviceOps> (*make_ops)(int ordinal, void* stream,
                                         const DeviceTuning& tuning) = nullptr;
  // What fusions with convolutions of these shapes take on that GPU. Throws std::runtime_error.
  std::vector<FusionTime> (*time_fusions)(int ordinal, void* stream, const DeviceTuning& tuning,
                                          std::span<const ConvShape> shapes) = nullptr;
};

using CudaTrainPluginEntry = const CudaTrainPlugin* (*)();

}  // namespace stoker
