// How GPUs are connected, as reported by NVIDIA's management library (NVML: opened at run time,
// never linked; creates no context). What it does not report stays empty, and so does everything if
// it is missing. Values; any thread.
#pragma once

#include <string>
#include <vector>

#include "tools/machine/nvml_library.h"

namespace stoker {

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

// "PCIe 5.0 x16, 18 NVLinks", "PCIe 3.0 x8 (5.0 x16 at most)"; "" if nothing is known.
std::string text_of(const GpuLinks& links);

}  // namespace stoker
