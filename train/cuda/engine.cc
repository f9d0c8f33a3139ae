#include "train/cuda/engine.h"

#include <stdexcept>

#include "staging/plugin.h"
#include "train/cuda/train_plugin.h"
#include "train/device/engine.h"

namespace stoker {
namespace {

const CudaTrainPlugin* open_cuda_train(std::string& problem) {
  const Plugin plugin = open_plugin(kCudaTrainPluginFile, kCudaTrainPluginEntry);
  problem = plugin.problem;
  if (plugin.entry == nullptr) return nullptr;
  const CudaTrainPlugin* table = reinterpret_cast<CudaTrainPluginEntry>(plugin.entry)();
  problem = other_build(kCudaTrainPluginFile, {table->version, table->build},
                        {kCudaTrainPluginVersion, STOKER_BUILD_STAMP});
  return problem.empty() ? table : nullptr;
}

// Returns the plugin or throws; `what` names the attempted operation for the error.
const CudaTrainPlugin* plugin_for(const Device& device, const std::string& what) {
  if (device.cuda_ordinal() < 0) {
    throw std::invalid_argument("the CUDA engine cannot " + what + " on " + device.name() +
                                ": it is no CUDA device");
  }
  std::string problem;
  const CudaTrainPlugin* plugin = open_cuda_train(problem);
  if (plugin == nullptr) {
    throw std::runtime_error("cannot " + what + " on " + device.name() + ": " + problem);
  }
  return plugin;
}

}  // namespace

std::string cuda_engine_problem() {
  std::string problem;
  open_cuda_train(problem);
  return problem;
}

std::unique_ptr<Engine> make_cuda_engine(const NetSpec& net, const EngineOptions& options,
                                         Device& device) {
  return make_cuda_engine(net, options, device, DeviceTuning{});
}

std::unique_ptr<Engine> make_cuda_engine(const NetSpec& net, const EngineOptions& options,
                                         Device& device, const DeviceTuning& tuning) {
  const CudaTrainPlugin* plugin = plugin_for(device, "train '" + net.name + "'");
  return std::make_unique<DeviceEngine>(
      net, options, tuning, device, [&](Device& on, Stream& stream) {
        return plugin->make_ops(on.cuda_ordinal(), stream.native_handle(), tuning);
      });
}

std::vector<FusionTime> time_cuda_fusions(std::span<const ConvShape> shapes, Device& device,
                                          const DeviceTuning& tuning) {
  const CudaTrainPlugin* plugin = plugin_for(device, "time fused convolutions");
  const std::unique_ptr<Stream> stream = device.make_stream();
  return plugin->time_fusions(device.cuda_ordinal(), stream->native_handle(), tuning, shapes);
}

}  // namespace stoker
