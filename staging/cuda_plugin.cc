#include "staging/cuda_plugin.h"

#include "staging/plugin.h"

namespace stoker {

const CudaPlugin* open_cuda_plugin(std::string& problem) {
  const Plugin plugin = open_plugin(kCudaPluginFile, kCudaPluginEntry);
  problem = plugin.problem;
  if (plugin.entry == nullptr) return nullptr;
  const CudaPlugin* table = reinterpret_cast<CudaPluginEntry>(plugin.entry)();
  problem = other_build(kCudaPluginFile, {table->version, table->build},
                        {kCudaPluginVersion, STOKER_BUILD_STAMP});
  return problem.empty() ? table : nullptr;
}

}  // namespace stoker
