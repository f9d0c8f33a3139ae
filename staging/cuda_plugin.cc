#include "staging/cuda_plugin.h"

#include "staging/plugin.h"

namespace stoker {

const CudaPlugin* open_cuda_plugin(std::string& problem) {
  const Plugin plugin = open_plugin(kCudaPluginFile, kCudaPluginEntry);
  problem = plugin.problem;
  if (plugin.entry == nullptr) return nullptr;
  const CudaPlugin* table = reinterpret_cast<CudaPluginEntry>(plugin.entry)();
  if (table->version != kCudaPluginVersion || std::string(table->build) != STOKER_BUILD_STAMP) {
    problem = std::string(kCudaPluginFile) + " comes from another build of stoker";
    return nullptr;
  }
  return table;
}

}  // namespace stoker
