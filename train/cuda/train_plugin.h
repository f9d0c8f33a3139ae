// The interface of libstoker_cuda_train.so: one C entry, stoker_cuda_train_plugin(), which returns
// this table. Program and plugin must come from one build, because the table contains C++ types: a
// plugin whose `build` differs is rejected. Threads: any.
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
  const char* build = nullptr;  // stamp of the plugin's build
  // Makes operations on the GPU with this ordinal (of cudaSetDevice) and on this cudaStream_t,
  // which must outlive them. Throws std::runtime_error.
  std::unique_ptr<DeviceOps> (*make_ops)(int ordinal, void* stream,
                                         const DeviceTuning& tuning) = nullptr;
  // Times fusions with convolutions of these shapes on that GPU. Throws std::runtime_error.
  std::vector<FusionTime> (*time_fusions)(int ordinal, void* stream, const DeviceTuning& tuning,
                                          std::span<const ConvShape> shapes) = nullptr;
};

using CudaTrainPluginEntry = const CudaTrainPlugin* (*)();

}  // namespace stoker
