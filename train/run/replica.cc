#include "train/run/replica.h"

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>

#include "staging/device_list.h"
#include "train/cuda/engine.h"

namespace stoker {
namespace {

constexpr int kMaxReplicas = 256;
constexpr std::string_view kGpu = "cuda";

[[noreturn]] void refuse_devices(const std::string& text) {
  throw std::invalid_argument(fmt::format(
      "devices: '{}' is none of cpu:N, cuda:all, cuda:0,1, cuda:0*2 (up to {} replicas)", text,
      kMaxReplicas));
}

// Parses all of `digits`; refuses anything else.
int number_of_list(std::string_view digits, int low, const std::string& text) {
  int value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc() || stop != end || value < low || value > kMaxReplicas)
    refuse_devices(text);
  return value;
}

std::vector<std::string> all_gpus() {
  const CudaStatus status = query_cuda();
  if (!status.problem.empty()) throw std::runtime_error("devices: cuda:all: " + status.problem);
  std::vector<std::string> names;
  for (const CudaDeviceInfo& info : status.devices) names.push_back(info.name);
  return names;
}

// "0,1" or "0*2".
std::vector<std::string> listed_gpus(std::string_view list, const std::string& text) {
  std::vector<std::string> names;
  while (true) {
    const size_t comma = list.find(',');
    const std::string_view item = list.substr(0, comma);
    const size_t star = item.find('*');
    const int times = star == item.npos ? 1 : number_of_list(item.substr(star + 1), 1, text);
    const std::string name = fmt::format("cuda:{}", number_of_list(item.substr(0, star), 0, text));
    names.insert(names.end(), static_cast<size_t>(times), name);
    if (comma == list.npos) break;
    list.remove_prefix(comma + 1);
  }
  if (names.size() > kMaxReplicas) refuse_devices(text);
  return names;
}

}  // namespace

std::vector<std::string> parse_devices(const std::string& text, int local_rank, int local_world) {
  const size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  const std::string list = colon == text.npos ? "" : text.substr(colon + 1);
  if (kind == "cpu") {
    std::vector<std::string> names;
    const int count = colon == text.npos ? 1 : number_of_list(list, 1, text);
    for (int i = 0; i < count; ++i) names.push_back(fmt::format("cpu:{}", i));
    return names;
  }
  if (kind != kGpu || (colon != text.npos && list.empty())) refuse_devices(text);
  std::vector<std::string> names =
      colon == text.npos || list == "all" ? all_gpus() : listed_gpus(list, text);
  const auto count = static_cast<int>(names.size());
  if (count < local_world) return names;
  if (count % local_world != 0) {
    throw std::invalid_argument(
        fmt::format("devices: {}: {} replicas do not divide over the {} processes on this machine",
                    text, count, local_world));
  }
  const int each = count / local_world;
  return {names.begin() + local_rank * each, names.begin() + (local_rank + 1) * each};
}

bool is_gpu(const std::string& device_name) { return device_name.rfind(kGpu, 0) == 0; }

bool on_gpus(const std::vector<std::string>& devices) {
  size_t gpus = 0;
  for (const std::string& name : devices) gpus += is_gpu(name);
  if (gpus > 0 && gpus < devices.size()) {
    throw std::invalid_argument("devices: CPU and GPU replicas do not train together");
  }
  return gpus > 0;
}

std::unique_ptr<Engine> make_engine_on(Device& device, const NetSpec& net,
                                       const EngineOptions& options) {
  return is_gpu(device.name()) ? make_cuda_engine(net, options, device)
                               : make_cpu_engine(net, options);
}

Replica make_replica(const std::string& device_name, const NetSpec& net,
                     const EngineOptions& options) {
  Replica replica;
  replica.device = make_device(device_name);
  replica.engine = make_engine_on(*replica.device, net, options);
  return replica;
}

}  // namespace stoker
