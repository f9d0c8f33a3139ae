// The interface of libstoker_cuda.so: one C entry, stoker_cuda_plugin(), returns this table.
// Program and plugin must be from one build, because the table contains C++ types: `build`
// identifies it, and a plugin of another build is refused. Threads: any.
#pragma once

#include <memory>
#include <string>

#include "staging/device.h"
#include "staging/normalise.h"
#include "staging/row_edits.h"

namespace stoker {

inline constexpr char kCudaPluginFile[] = "libstoker_cuda.so";
inline constexpr char kCudaPluginEntry[] = "stoker_cuda_plugin";
inline constexpr int kCudaPluginVersion = 2;  // of this table

struct CudaPlugin {
  int version = 0;              // kCudaPluginVersion; first in every version of the table
  const char* build = nullptr;  // build_stamp() of the plugin's build
  int runtime_version = 0;      // CUDA runtime of the plugin: 13000 is 13.0
  // Throws std::runtime_error. REQUIRES: the ordinal exists (query_cuda() has listed it).
  std::unique_ptr<Device> (*make_device)(int ordinal, int numa_node) = nullptr;
  // Each queues its kernel on a stream of a device from make_device.
  void (*normalise)(Stream& stream, const NormaliseArgs& args) = nullptr;
  void (*edit_rows)(Stream& stream, const RowEditArgs& args) = nullptr;
};

using CudaPluginEntry = const CudaPlugin* (*)();

// Returns nullptr and the problem in one line; a build without nvcc uses no_cuda_plugin.cc.
const CudaPlugin* open_cuda_plugin(std::string& problem);

}  // namespace stoker
