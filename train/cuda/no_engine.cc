// Built instead of the CUDA engine if nvcc, cuDNN or cuBLASLt was not found or not wanted.
#include <stdexcept>

#include "train/cuda/engine.h"
#include "train/device/memory.h"

namespace stoker {

std::string cuda_engine_problem() {
  return "this build has no CUDA engine (configure with nvcc, cuDNN and cuBLASLt installed and "
         "STOKER_CUDA=ON)";
}

std::unique_ptr<Engine> make_cuda_engine(const NetSpec& net, const EngineOptions& options,
                                         Device& device) {
  return make_cuda_engine(net, options, device, DeviceTuning{});
}

std::unique_ptr<Engine> make_cuda_engine(const NetSpec& net, const EngineOptions&, Device& device,
                                         const DeviceTuning&) {
  throw std::runtime_error("cannot train '" + net.name + "' on " + device.name() + ": " +
                           cuda_engine_problem());
}

std::vector<FusionTime> time_cuda_fusions(std::span<const ConvShape>, Device& device,
                                          const DeviceTuning&) {
  throw std::runtime_error("cannot time fusions on " + device.name() + ": " +
                           cuda_engine_problem());
}

}  // namespace stoker
