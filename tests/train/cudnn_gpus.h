// GPUs that are only described to cuDNN, and the convolutions of a net.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "train/cuda/fold_shape.h"
#include "train/device/program.h"
#include "train/device/tuning.h"
#include "train/model/models.h"

namespace stoker {

struct DescribedGpu {
  const char* name;
  int compute, multiprocessors;
  int64_t shared_bytes, l2_bytes, memory_bytes;
};

inline constexpr DescribedGpu kGpus[] = {
    {"NVIDIA A100-SXM4-80GB", 800, 108, 166912, 41943040, 85899345920},
    {"NVIDIA H200", 900, 132, 232448, 62914560, 150754820096},
    {"NVIDIA B200", 1000, 148, 232448, 132644864, 191512969216}};

// Returns cuDNN's description of a GPU.
inline std::string json_of(const DescribedGpu& gpu) {
  const auto field = [](const char* name, int64_t value) {
    return ", \"" + std::string(name) + "\": " + std::to_string(value);
  };
  return "{\"cudaDeviceId\": 0" + field("deviceVer", gpu.compute) + field("driverVer", 13000) +
         field("totalGlobalMem", gpu.memory_bytes) +
         ", \"maxGridSize\": [2147483647, 65535, 65535], \"maxBlockSize\": [1024, 1024, 64]" +
         field("regsPerBlock", 65536) + field("multiProcessorCount", gpu.multiprocessors) +
         field("warpSize", 32) + field("maxSharedMemoryPerBlock", 49152) +
         field("maxSharedMemoryPerBlockOptin", gpu.shared_bytes) +
         field("reservedSharedMemoryPerBlock", 1024) + field("maxRegistersPerSM", 65536) +
         field("maxCtasPerSM", 32) + field("maxThreadsPerBlock", 1024) +
         field("maxThreadsPerSM", 2048) + field("pciDeviceId", 0) + field("isTccDriver", 0) +
         field("supportCoopLaunch", 1) + field("smClockRateKHz", 1980000) +
         field("memClockRateKHz", 3201000) + field("l2CacheSize", gpu.l2_bytes) +
         ", \"deviceName\": \"" + gpu.name + "\"}";
}

// Returns the convolutions that an execution plan asks cuDNN for, without running anything.
inline std::vector<ConvShape> shapes_of(const NetSpec& net, int rows, Precision precision) {
  std::vector<ConvShape> shapes = conv_shapes(net, device_fusion({}), rows, precision);
  for (ConvShape& shape : shapes) {
    if (const std::optional<FoldedShape> folded = fold(shape)) shape = folded->folded;
  }
  return shapes;
}

}  // namespace stoker
