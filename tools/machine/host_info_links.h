// How GPUs hang on the machine, as NVIDIA's management library says (NVML: opened at run time,
// never linked; no context is made). What it does not say, or all of it where it is missing, stays
// empty. Values; any thread.
#pragma once

#include <string>
#include <vector>

namespace stoker {

struct GpuLinks {
  int pcie_generation = 0;      // now; an idle GPU may slow its link down
  int pcie_width = 0;           // lanes, now
  int pcie_generation_max = 0;  // of this GPU in this machine
  int pcie_width_max = 0;
  int nvlinks = 0;  // that are up
};

struct GpuLinksReport {
  std::string driver;           // "580.65.06"; "" where NVML is missing
  std::vector<GpuLinks> links;  // one for each bus id asked for
};

GpuLinksReport read_gpu_links(const std::vector<std::string>& pci_bus_ids,
                              const std::string& library = "libnvidia-ml.so.1");

// "PCIe 5.0 x16, 18 NVLinks", "PCIe 3.0 x8 (5.0 x16 at most)"; "" if nothing is known.
std::string text_of(const GpuLinks& links);

}  // namespace stoker
