#include "train/cuda_engine.h"

#include <stdexcept>

#include "staging/plugin.h"
#include "train/cuda_train_plugin.h"
#include "train/device_engine.h"

namespace stoker {
namespace {

const CudaTrainPlugin* open_cuda_train(std::string& problem) {
  const Plugin plugin = open_plugin(kCudaTrainPluginFile, kCudaTrainPluginEntry);
  problem = plugin.problem;
  if (plugin.entry == nullptr) return nullptr;
  const CudaTrainPlugin* table = reinterpret_cast<CudaTrainPluginEntry>(plugin.entry)();
  if (table->version != kCudaTrainPluginVersion ||
      std::string(table->build) != STOKER_BUILD_STAMP) {
    problem = std::string(kCudaTrainPluginFile) + " comes from another build of stoker";
    return nullptr;
  }
  return table;
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
  if (device.cuda_ordinal() < 0) {
    throw std::invalid_argument("the CUDA engine cannot train '" + net.name + "' on " +
                                device.name() + ": it is no CUDA device");
  }
  std::string problem;
  const CudaTrainPlugin* plugin = open_cuda_train(problem);
  if (plugin == nullptr) {
    throw std::runtime_error("cannot train '" + net.name + "' on " + device.name() + ": " +
                             problem);
  }
  return std::make_unique<DeviceEngine>(
      net, options, tuning, device, [&](Device& on, Stream& stream) {
        return plugin->make_ops(on.cuda_ordinal(), stream.native_handle(), tuning);
      });
}

int64_t largest_cuda_batch(const NetSpec& net, const EngineOptions& options, Device&, int64_t bytes,
                           int64_t slot_bytes_per_row, int step) {
  return largest_device_batch(net, options, DeviceTuning{}, bytes, slot_bytes_per_row, step);
}

}  // namespace stoker
