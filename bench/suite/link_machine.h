// A machine as its links see it: GPUs, the way from each to the host's memory, and which links are
// shared. It comes from a preset (the .cc has the sources of their figures) or a JSON
// file. Values; any thread. Errors: std::invalid_argument with the file and what does not fit.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace stoker {

inline constexpr int64_t kGiB = int64_t{1} << 30;

// A link carries bytes in both directions at once, each at its own rate.
struct MachineLink {
  std::string name;
  double down = 0, up = 0;  // bytes/s away from the host's memory, and towards it
};

struct MachineGpu {
  std::string name;
  std::vector<int> path;     // links from the GPU to the host's memory, by index
  int direct = -1;           // the link to the other GPUs: its `up` sends, its `down` receives
  int64_t memory_bytes = 0;  // 0: not known
};

// The way of bytes from one GPU to another.
enum class PeerWay : uint8_t {
  direct,  // over links between the GPUs alone, such as NVLink, with a switch that never limits
  tree,    // up to the first link that both share, and down again: PCIe's peer-to-peer copies
  host,    // into the host's memory and out of it, where GPUs cannot copy to one another
};

struct LinkMachine {
  std::string name;
  std::string source;  // where the figures come from, and what is assumed
  std::vector<MachineLink> links;
  std::vector<MachineGpu> gpus;
  PeerWay peers = PeerWay::tree;
  double memory_per_second = 0;  // bytes/s that the host's memory reads and writes together
  double latency_seconds = 0;    // of every copy and message; 0: left out
};

// A link's use by a copy: how often the bytes cross it, and in which direction.
struct LinkUse {
  int link = 0;
  bool down = false;
};

// The links of a copy, and how often each of its bytes is read or written in the host's memory.
struct Route {
  std::vector<LinkUse> links;
  int memory = 0;
};

Route route_to_gpu(const LinkMachine& machine, int gpu);
Route route_to_host(const LinkMachine& machine, int gpu);
Route route_between(const LinkMachine& machine, int from, int to);

// Bytes/s of a PCIe link that copies reach. Throws for a generation outside 1..6 or lanes outside
// 1..32.
double pcie_bytes_per_second(int generation, int lanes);

// {"name", "source", "memory_gb_per_second", "latency_us", "peers": "direct" | "tree" | "host",
//  "links": [{"name", "pcie": generation, "lanes"} or {"name", "gb_per_second"} or
//            {"name", "gb_per_second_down", "gb_per_second_up"}],
//  "gpus": [{"name", "path": [names of links, from the GPU to the memory], "direct": a link's name,
//            "memory_gib"}]}
// "source", "latency_us", "memory_gib" and, unless peers are "direct", "direct" may be left out.
// Numbers are from 1e-6 to 1e6.
LinkMachine parse_machine(const nlohmann::ordered_json& json);
nlohmann::ordered_json to_json(const LinkMachine& machine);

std::vector<LinkMachine> machine_presets();
// Takes a preset's name, or the path of a JSON file.
LinkMachine find_machine(const std::string& preset_or_file);

}  // namespace stoker
