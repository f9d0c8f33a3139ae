#include "tools/host_info_links.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>

namespace stoker {
namespace {

constexpr int kSuccess = 0;
constexpr unsigned kMostNvlinks = 18;

// NVML's C interface, declared here: its header is not in every toolkit.
struct Calls {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*driver_version)(char* version, unsigned length) = nullptr;
  int (*handle)(const char* pci_bus_id, void** device) = nullptr;
  int (*generation)(void* device, unsigned* value) = nullptr;
  int (*width)(void* device, unsigned* value) = nullptr;
  int (*generation_max)(void* device, unsigned* value) = nullptr;
  int (*width_max)(void* device, unsigned* value) = nullptr;
  int (*nvlink_state)(void* device, unsigned link, unsigned* is_active) = nullptr;
};

template <typename Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

bool find_calls(void* library, Calls& calls) {
  return find(library, "nvmlInit_v2", calls.init) &&
         find(library, "nvmlShutdown", calls.shutdown) &&
         find(library, "nvmlSystemGetDriverVersion", calls.driver_version) &&
         find(library, "nvmlDeviceGetHandleByPciBusId_v2", calls.handle) &&
         find(library, "nvmlDeviceGetCurrPcieLinkGeneration", calls.generation) &&
         find(library, "nvmlDeviceGetCurrPcieLinkWidth", calls.width) &&
         find(library, "nvmlDeviceGetMaxPcieLinkGeneration", calls.generation_max) &&
         find(library, "nvmlDeviceGetMaxPcieLinkWidth", calls.width_max) &&
         find(library, "nvmlDeviceGetNvLinkState", calls.nvlink_state);
}

int value_of(int (*call)(void*, unsigned*), void* device) {
  unsigned value = 0;
  return call(device, &value) == kSuccess ? static_cast<int>(value) : 0;
}

GpuLinks read_links(const Calls& calls, const std::string& pci_bus_id) {
  GpuLinks links;
  void* device = nullptr;
  if (calls.handle(pci_bus_id.c_str(), &device) != kSuccess) return links;
  links.pcie_generation = value_of(calls.generation, device);
  links.pcie_width = value_of(calls.width, device);
  links.pcie_generation_max = value_of(calls.generation_max, device);
  links.pcie_width_max = value_of(calls.width_max, device);
  for (unsigned link = 0; link < kMostNvlinks; ++link) {
    unsigned is_active = 0;
    if (calls.nvlink_state(device, link, &is_active) == kSuccess && is_active == 1) {
      ++links.nvlinks;
    }
  }
  return links;
}

}  // namespace

GpuLinksReport read_gpu_links(const std::vector<std::string>& pci_bus_ids,
                              const std::string& library) {
  GpuLinksReport report;
  report.links.resize(pci_bus_ids.size());
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);  // stays: as the driver does
  Calls calls;
  if (handle == nullptr || !find_calls(handle, calls) || calls.init() != kSuccess) return report;
  std::array<char, 96> version{};
  if (calls.driver_version(version.data(), version.size() - 1) == kSuccess) {
    report.driver = version.data();
  }
  for (size_t i = 0; i < pci_bus_ids.size(); ++i) {
    report.links[i] = read_links(calls, pci_bus_ids[i]);
  }
  calls.shutdown();
  return report;
}

std::string text_of(const GpuLinks& links) {
  std::string text;
  if (links.pcie_generation > 0 && links.pcie_width > 0) {
    text = fmt::format("PCIe {}.0 x{}", links.pcie_generation, links.pcie_width);
    if (links.pcie_generation < links.pcie_generation_max ||
        links.pcie_width < links.pcie_width_max) {
      text += fmt::format(" ({}.0 x{} at most)", links.pcie_generation_max, links.pcie_width_max);
    }
  }
  if (links.nvlinks > 0) {
    text += fmt::format("{}{} NVLink{}", text.empty() ? "" : ", ", links.nvlinks,
                        links.nvlinks == 1 ? "" : "s");
  }
  return text;
}

}  // namespace stoker
