// A model's file: std::runtime_error, or tensors that can all be read.
#include <stdexcept>
#include <vector>

#include "train/checkpoint/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  try {
    const SafetensorsFile file(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
    for (const auto& [name, tensor] : file.tensors()) {
      if (tensor.dtype != "F32") continue;
      std::vector<float> values((tensor.end - tensor.begin) / sizeof(float));
      file.read(name, tensor.shape, values);
    }
  } catch (const std::runtime_error&) {
  }
  return 0;
}
