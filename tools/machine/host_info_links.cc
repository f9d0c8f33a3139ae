#include "tools/machine/host_info_links.h"

#include <fmt/format.h>

#include <array>

namespace stoker {
namespace {

constexpr unsigned kMaxNvlinks = 18;

struct LinkCalls {
  int (*driver_version)(char* version, unsigned length) = nullptr;
  int (*handle)(const char* pci_bus_id, void** device) = nullptr;
  int (*generation)(void* device, unsigned* value) = nullptr;
  int (*width)(void* device, unsigned* value) = nullptr;
  int (*generation_max)(void* device, unsigned* value) = nullptr;
  int (*width_max)(void* device, unsigned* value) = nullptr;
  int (*nvlink_state)(void* device, unsigned link, unsigned* is_active) = nullptr;
};

bool find_link_calls(const NvmlLibrary& library, LinkCalls& calls) {
  return library.find("nvmlSystemGetDriverVersion", calls.driver_version) &&
         library.find("nvmlDeviceGetHandleByPciBusId_v2", calls.handle) &&
         library.find("nvmlDeviceGetCurrPcieLinkGeneration", calls.generation) &&
         library.find("nvmlDeviceGetCurrPcieLinkWidth", calls.width) &&
         library.find("nvmlDeviceGetMaxPcieLinkGeneration", calls.generation_max) &&
         library.find("nvmlDeviceGetMaxPcieLinkWidth", calls.width_max) &&
         library.find("nvmlDeviceGetNvLinkState", calls.nvlink_state);
}

int value_of(int (*call)(void*, unsigned*), void* device) {
  unsigned value = 0;
  return call(device, &value) == kNvmlSuccess ? static_cast<int>(value) : 0;
}

GpuLinks read_links(const LinkCalls& calls, const std::string& pci_bus_id) {
  GpuLinks links;
  void* device = nullptr;
  if (calls.handle(pci_bus_id.c_str(), &device) != kNvmlSuccess) return links;
  links.pcie_generation = value_of(calls.generation, device);
  links.pcie_width = value_of(calls.width, device);
  links.pcie_generation_max = value_of(calls.generation_max, device);
  links.pcie_width_max = value_of(calls.width_max, device);
  for (unsigned link = 0; link < kMaxNvlinks; ++link) {
    unsigned is_active = 0;
    if (calls.nvlink_state(device, link, &is_active) == kNvmlSuccess && is_active == 1) {
      ++links.nvlinks;
    }
  }
  return links;
}

}  // namespace

GpuLinksReport read_gpu_links(const std::vector<std::string>& pci_bus_ids,
                              const std::string& file) {
  GpuLinksReport report;
  report.links.resize(pci_bus_ids.size());
  NvmlLibrary library(file);
  LinkCalls calls;
  if (!library.start(find_link_calls(library, calls))) return report;
  std::array<char, 96> version{};
  if (calls.driver_version(version.data(), version.size() - 1) == kNvmlSuccess) {
    report.driver = version.data();
  }
  for (size_t i = 0; i < pci_bus_ids.size(); ++i) {
    report.links[i] = read_links(calls, pci_bus_ids[i]);
  }
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
