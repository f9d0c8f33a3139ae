// The machines that are known by name, with the source of every figure. What has no source is an
// assumption, and LinkMachine::source, which a plan prints, says so.
#include <fmt/format.h>

#include "bench/suite/link_machine.h"

namespace stoker {
namespace {

// Share of the nominal bandwidth of a host's memory that copies reach: an assumption.
constexpr double kMemoryShare = 0.8;

int add_link(LinkMachine& machine, const std::string& name, double down, double up) {
  machine.links.push_back({name, down, up});
  return static_cast<int>(machine.links.size()) - 1;
}

// The machine of the study (github.com/rossumai/keras-multi-gpu, "7gforce"): one GTX 1080 on eight
// lanes and six GTX 1070 on risers of one lane, Xeon E5-2630 v4. Its bandwidthTest measured 6.234
// GB/s to the 1080 and 0.763 to 0.768 to the others, and its p2pBandwidthLatencyTest 0.73 to 0.82
// GB/s between GPUs, which is a riser's. 8 GiB: NVIDIA's specifications of both. Memory: four
// channels of DDR4-2133, 68.3 GB/s nominal (Intel's specification of the E5-2630 v4). Assumed:
// bytes are as quick up as down; nothing above the risers limits them.
LinkMachine seven_gpus() {
  LinkMachine machine;
  machine.name = "7gforce";
  machine.source =
      "measured by the study (github.com/rossumai/keras-multi-gpu): copies to each GPU and between "
      "GPUs; by specification: memory of the GPUs and of the host; assumed: the same rate in both "
      "directions, nothing shared above the risers, 80 % of the host's nominal memory bandwidth";
  machine.peers = PeerWay::tree;
  machine.memory_per_second = kMemoryShare * 68.3e9;
  for (int gpu = 0; gpu < 7; ++gpu) {
    const bool wide = gpu == 0;
    const double rate = wide ? 6.234e9 : 0.765e9;
    const int link =
        add_link(machine, fmt::format("{}{}", wide ? "x8-" : "riser", gpu), rate, rate);
    machine.gpus.push_back(
        {fmt::format("{}-{}", wide ? "gtx1080" : "gtx1070", gpu), {link}, -1, 8 * kGiB});
  }
  return machine;
}

// Azure NV24, the study's "az-4x-m60": two Tesla M60 with two GPUs each. Its bandwidthTest measured
// 6.07 GB/s to a GPU and 6.53 from it, and no peer-to-peer copies. 8 GiB for each GPU, and one
// connector of 16 lanes of PCIe 3 for each card, which its two GPUs share: NVIDIA's board
// specification of the Tesla M60. Memory: four channels of DDR4-2133 of a Xeon E5-2690 v3, 68.3
// GB/s nominal (Intel's specification). Assumed: the virtual machine has all of one such socket.
LinkMachine four_m60() {
  LinkMachine machine;
  machine.name = "4xm60";
  machine.source =
      "measured by the study (github.com/rossumai/keras-multi-gpu): copies to and from a GPU, no "
      "copies between GPUs; by specification: the two GPUs of a card share 16 lanes of PCIe 3, "
      "memory of the GPUs and of the host; assumed: one socket's memory, 80 % of its nominal "
      "bandwidth";
  machine.peers = PeerWay::host;
  machine.memory_per_second = kMemoryShare * 68.3e9;
  for (int card = 0; card < 2; ++card) {
    const double shared = pcie_bytes_per_second(3, 16);
    const int slot = add_link(machine, fmt::format("card{}", card), shared, shared);
    for (int half = 0; half < 2; ++half) {
      const int gpu = 2 * card + half;
      const int link = add_link(machine, fmt::format("gpu{}", gpu), 6.07e9, 6.53e9);
      machine.gpus.push_back({fmt::format("m60-{}", gpu), {link, slot}, -1, 8 * kGiB});
    }
  }
  return machine;
}

// DGX H100: eight H100 SXM. NVLink 4: 900 GB/s for a GPU, both directions together, over switches
// that give every GPU all of it; PCIe 5 x16; 80 GB (NVIDIA's data sheet of the H100). Memory: two
// Xeon 8480C with eight channels of DDR5-4800 each, 614 GB/s nominal (NVIDIA's user guide of the
// DGX H100). Assumed: copies reach 80 % of NVLink; every GPU has its 16 lanes alone; both sockets'
// memory is one.
LinkMachine eight_h100() {
  constexpr double kNvLinkShare = 0.8;
  LinkMachine machine;
  machine.name = "8xh100";
  machine.source =
      "by specification (NVIDIA's data sheet of the H100 and user guide of the DGX H100): NVLink "
      "4, "
      "PCIe 5 x16, memory; assumed: 80 % of NVLink's and of the memory's nominal bandwidth, 78 % "
      "of "
      "PCIe's, 16 lanes for each GPU alone, one memory for both sockets; nothing was measured";
  machine.peers = PeerWay::direct;
  machine.memory_per_second = kMemoryShare * 614e9;
  for (int gpu = 0; gpu < 8; ++gpu) {
    const double pcie = pcie_bytes_per_second(5, 16), nvlink = kNvLinkShare * 450e9;
    const int path = add_link(machine, fmt::format("pcie{}", gpu), pcie, pcie);
    const int direct = add_link(machine, fmt::format("nvlink{}", gpu), nvlink, nvlink);
    machine.gpus.push_back({fmt::format("h100-{}", gpu), {path}, direct, int64_t{80'000'000'000}});
  }
  return machine;
}

// For `stoker bench predict`: links that the threads of an ordinary machine imitate with little
// work, and a switch that limits two GPUs together. It is nobody's machine.
LinkMachine two_throttled() {
  LinkMachine machine;
  machine.name = "2xthrottled";
  machine.source = "invented, so that host devices can imitate its links";
  machine.peers = PeerWay::tree;
  machine.memory_per_second = 6e9;
  const int shared = add_link(machine, "switch", 0.6e9, 0.6e9);
  for (int gpu = 0; gpu < 2; ++gpu) {
    const int link = add_link(machine, fmt::format("link{}", gpu), 0.4e9, 0.4e9);
    machine.gpus.push_back({fmt::format("gpu{}", gpu), {link, shared}, -1, kGiB});
  }
  return machine;
}

}  // namespace

std::vector<LinkMachine> machine_presets() {
  return {seven_gpus(), four_m60(), eight_h100(), two_throttled()};
}

}  // namespace stoker
