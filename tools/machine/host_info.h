// The part of this machine that the process may use: cores, memory, instruction sets. Reads only
// files of /proc and /sys. Values; any thread. (GPUs: staging/device_list.h.)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "staging/device_list.h"
#include "tools/machine/gpu_figures.h"

namespace stoker {

struct HostInfo {
  std::string cpu;                        // model name; "" if unknown
  std::string processor;                  // the kind: "AuthenticAMD 26.2"; cpu if that is unknown
  std::vector<std::string> cpu_features;  // those that stoker or its libraries use
  int cores_machine = 0;                  // online
  int cores_usable = 0;                   // what affinity and the control group's quota leave
  int64_t memory_bytes = 0;
  int64_t memory_available_bytes = 0;
  int64_t memory_limit_bytes = 0;  // of the control group; 0: none
};

HostInfo read_host_info();

// How GPUs are connected, as reported by NVIDIA's management library (NVML: opened at run time,
// never linked; creates no context). What it does not report stays empty, and so does everything if
// it is missing. Values; any thread.
struct GpuLinks {
  int pcie_generation = 0;      // now; an idle GPU may slow its link down
  int pcie_width = 0;           // lanes, now
  int pcie_generation_max = 0;  // the most of this GPU in this machine
  int pcie_width_max = 0;
  int nvlinks = 0;  // links that are up
};

struct GpuLinksReport {
  std::string driver;           // "580.65.06"; "" if NVML is missing
  std::vector<GpuLinks> links;  // one per bus id of the argument
};

GpuLinksReport read_gpu_links(const std::vector<std::string>& pci_bus_ids,
                              const std::string& library = kNvmlLibrary);

// All of them that the CUDA driver lists, in its order.
struct GpuInfo {
  CudaStatus cuda;
  GpuLinksReport links;
};
GpuInfo read_gpu_info();

// "PCIe 5.0 x16, 18 NVLinks", "PCIe 3.0 x8 (5.0 x16 at most)"; "" if nothing is known.
std::string text_of(const GpuLinks& links);

}  // namespace stoker
