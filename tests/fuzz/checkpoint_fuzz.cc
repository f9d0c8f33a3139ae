// A checkpoint's folder with corrected checksums, and a model's file: std::runtime_error, or as
// many numbers as the net has. Input: (trainer.json, the headers of model.safetensors and
// state.safetensors); the tensors are zeros, as many as the headers declare.
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tests/fuzz/fuzz_parts.h"
#include "tests/support/temp_folder.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/checksum.h"
#include "train/checkpoint/json.h"

namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxBytes = 8 << 20;

// Writes a safetensors file with this header. Returns its seal, in trainer.json's format.
Json write_tensors(const stoker::TempFolder& folder, const char* name, std::string_view header) {
  uint64_t end = 0;
  const Json json = Json::parse(header, nullptr, false);
  if (json.is_object()) {
    for (const auto& [key, entry] : json.items()) {
      const auto offsets = entry.is_object() ? entry.find("data_offsets") : entry.end();
      if (offsets == entry.end() || !offsets->is_array() || offsets->size() != 2) continue;
      const Json& last = offsets->back();
      if (last.is_number_unsigned()) end = std::max(end, last.get<uint64_t>());
    }
  }
  std::string file(8, '\0');
  for (size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(uint64_t{header.size()} >> (8 * i));
  file += header;
  file.append(std::min(end, kMaxBytes), '\0');
  folder.write(name, file);
  return {{"bytes", file.size()}, {"fnv1a", stoker::to_hex(stoker::fnv1a(file))}};
}

std::string sealed(std::string_view trainer_json, const Json& model, const Json& state) {
  Json json = Json::parse(trainer_json, nullptr, false);
  if (!json.is_object()) return std::string(trainer_json);
  json["files"] = {{"model.safetensors", model}, {"state.safetensors", state}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  static const TempFolder folder;
  const FuzzParts parts = split_fuzz_parts(data, size);
  const Json model_seal = write_tensors(folder, "model.safetensors", parts[1]);
  const Json state_seal = write_tensors(folder, "state.safetensors", parts[2]);
  folder.write("trainer.json", sealed(parts[0], model_seal, state_seal));
  try {
    const LoadedModel model = load_model(folder.path());
    const auto parameters = total_count(parameter_table(model.info.net()));
    if (static_cast<int64_t>(model.parameters.size()) != parameters) std::abort();
  } catch (const std::runtime_error&) {
  }
  try {
    CheckpointInfo info;
    TrainState state;
    load_checkpoint(folder.path(), info, state);
    if (state.momenta.size() != state.parameters.size()) std::abort();
  } catch (const std::runtime_error&) {
  }
  return 0;
}
