#include "staging/device_list.h"

#include <charconv>
#include <cstdlib>
#include <stdexcept>

#include "staging/cuda_driver.h"
#include "staging/cuda_plugin.h"

namespace stoker {
namespace {

// The plugin contains machine code for this compute capability and later ones.
constexpr int kMinComputeMajor = 8;

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// Returns why the plugin cannot drive the driver's devices; "" if it can.
std::string plugin_problem(const CudaStatus& status) {
  std::string problem;
  const CudaPlugin* plugin = open_cuda_plugin(problem);
  if (plugin == nullptr) return problem;
  // Any driver of the runtime's major version is sufficient.
  const int needed = plugin->runtime_version / 1000 * 1000;
  if (status.driver_version >= needed) return "";
  return "the NVIDIA driver is too old: it supports CUDA " + version_text(status.driver_version) +
         ", this build needs " + version_text(needed);
}

const CudaDeviceInfo& checked_device(const CudaStatus& status, int ordinal) {
  const std::string name = "cuda:" + std::to_string(ordinal);
  if (!status.problem.empty()) throw std::runtime_error(name + ": " + status.problem);
  if (ordinal < 0 || ordinal >= static_cast<int>(status.devices.size())) {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    throw std::runtime_error(
        name + ": there is no such GPU; the last is " + status.devices.back().name +
        (visible == nullptr ? "" : std::string(" (CUDA_VISIBLE_DEVICES=\"") + visible + "\")"));
  }
  const CudaDeviceInfo& info = status.devices[static_cast<size_t>(ordinal)];
  if (info.compute_major < kMinComputeMajor) {
    throw std::runtime_error(name + ": " + info.model + " has compute capability " +
                             std::to_string(info.compute_major) + "." +
                             std::to_string(info.compute_minor) + ", stoker needs " +
                             std::to_string(kMinComputeMajor) + ".0 or later");
  }
  return info;
}

// Returns the number after "PREFIX:", or -1 if `name` does not have that form.
int index_after(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return -1;
  name.remove_prefix(prefix.size());
  int index = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  const bool whole = error == std::errc() && end == name.data() + name.size();
  return whole && name.front() != '-' ? index : -1;
}

}  // namespace

CudaStatus query_cuda() {
  CudaStatus status = query_driver();
  if (status.problem.empty()) status.problem = plugin_problem(status);
  return status;
}

std::unique_ptr<Device> make_cuda_device(int ordinal) {
  const CudaStatus status = query_cuda();
  const CudaDeviceInfo& info = checked_device(status, ordinal);
  std::string problem;
  return open_cuda_plugin(problem)->make_device(ordinal, info.numa_node);
}

std::unique_ptr<Device> make_device(std::string_view name) {
  if (const int index = index_after(name, "cpu:"); index >= 0) return make_host_device(index);
  if (const int ordinal = index_after(name, "cuda:"); ordinal >= 0) {
    return make_cuda_device(ordinal);
  }
  throw std::invalid_argument("\"" + std::string(name) +
                              "\" is no device: \"cpu:0\" and \"cuda:0\" are, with any number");
}

}  // namespace stoker
