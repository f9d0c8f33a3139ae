#include "tools/machine/host_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <set>
#include <sstream>

#include "staging/allowed_cores.h"
#include "staging/group_memory.h"

namespace stoker {
namespace {

// Names as in /proc/cpuinfo: x86, then Arm.
constexpr std::array kFeatures = {"sse4_2",      "avx2",        "fma",      "f16c",
                                  "avx512f",     "avx512bw",    "avx_vnni", "avx512_vnni",
                                  "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16",
                                  "asimd",       "bf16",        "sve",      "sve2"};

// Returns the value of the first "KEY<spaces>: VALUE" line.
std::string field(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

int64_t memory_field(const std::string& key) {
  std::istringstream value(field("/proc/meminfo", key));
  int64_t kibibytes = 0;
  value >> kibibytes;
  return kibibytes * 1024;
}

std::vector<std::string> cpu_features() {
  std::string line = field("/proc/cpuinfo", "flags");
  if (line.empty()) line = field("/proc/cpuinfo", "Features");
  std::istringstream words(line);
  std::set<std::string> known;
  for (std::string word; words >> word;) known.insert(word);
  std::vector<std::string> found;
  for (const char* name : kFeatures) {
    if (known.contains(name)) found.emplace_back(name);
  }
  return found;
}

// Hypervisors give several generations the same model name.
std::string processor_kind(const std::string& name) {
  const std::string family = field("/proc/cpuinfo", "cpu family");
  const std::string model = field("/proc/cpuinfo", "model");
  if (family.empty() || model.empty()) return name;
  return field("/proc/cpuinfo", "vendor_id") + " " + family + "." + model;
}

}  // namespace

HostInfo read_host_info() {
  HostInfo info;
  info.cpu = field("/proc/cpuinfo", "model name");
  info.processor = processor_kind(info.cpu);
  info.cpu_features = cpu_features();
  info.cores_machine = machine_cores();
  info.cores_usable = usable_cores();
  info.memory_bytes = memory_field("MemTotal");
  info.memory_available_bytes = memory_field("MemAvailable");
  info.memory_limit_bytes = std::max<int64_t>(read_group_memory().limit_bytes, 0);
  return info;
}

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

GpuInfo read_gpu_info() {
  GpuInfo gpus{query_cuda(), {}};
  std::vector<std::string> bus_ids;
  for (const CudaDeviceInfo& device : gpus.cuda.devices) bus_ids.push_back(device.pci_bus_id);
  gpus.links = read_gpu_links(bus_ids);
  return gpus;
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
