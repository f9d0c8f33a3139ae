// What libstoker_cuda.so gives the program: one C entry, stoker_cuda_plugin(), that returns this
// table. Program and plugin come from one build (the table holds C++ types): `build` says which,
// and a plugin of another one is refused. Threads: any.
#pragma once

#include <memory>
#include <string>

#include "staging/device.h"
#include "staging/normalise.h"

namespace stoker {

inline constexpr char kCudaPluginFile[] = "libstoker_cuda.so";
inline constexpr char kCudaPluginEntry[] = "stoker_cuda_plugin";
inline constexpr int kCudaPluginVersion = 1;  // of this table

struct CudaPlugin {
  int version = 0;              // kCudaPluginVersion; first in every version of the table
  const char* build = nullptr;  // build_stamp() of the build that it comes from
  int runtime_version = 0;      // of the CUDA runtime inside: 13000 is 13.0
  // Throws std::runtime_error. The ordinal exists (query_cuda() has listed it).
  std::unique_ptr<Device> (*make_device)(int ordinal, int numa_node) = nullptr;
  // Queues the kernel on a stream of a device made above.
  void (*normalise)(Stream& stream, const NormaliseArgs& args) = nullptr;
};

using CudaPluginEntry = const CudaPlugin* (*)();

// nullptr and why not, in one line; where nvcc was not found the file no_cuda_plugin.cc says so.
const CudaPlugin* open_cuda_plugin(std::string& problem);

}  // namespace stoker
