// A checkpoint's trainer.json: std::exception, or values that are the same after writing and
// reading them.
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "train/checkpoint/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  nlohmann::json json;
  CheckpointInfo info;
  try {
    json = nlohmann::json::parse(std::string_view(reinterpret_cast<const char*>(data), size));
    info = checkpoint_from_json(json);
  } catch (const std::exception&) {
    return 0;
  }
  const nlohmann::json written = checkpoint_to_json(info);
  if (checkpoint_to_json(checkpoint_from_json(written)) != written) std::abort();
  return 0;
}
