#include "bench/suite/link_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <utility>

#include "pipeline/files/json_file.h"

namespace stoker {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kGiga = 1e9;
constexpr double kMin = 1e-6, kMax = 1e6;
// Share of a PCIe link's nominal rate that copies reach. The study's machines measured 0.763 GB/s
// of 0.985 (x1), 6.234 of 7.877 (x8) and 11.7 of 15.754 (x16), all of generation 3.
constexpr double kPcieShare = 0.78;
// Nominal bytes/s of a lane by generation: the transfers per second with their encoding, 8b/10b in
// generations 1 and 2, 128b/130b up to 5, and 242 of 256 bytes of a flit in 6 (PCI Express Base
// Specification, revision 6.0).
constexpr std::array kLane = {0.25e9,
                              0.5e9,
                              8e9 * 128 / 130 / 8,
                              16e9 * 128 / 130 / 8,
                              32e9 * 128 / 130 / 8,
                              64e9 * 242 / 256 / 8};

constexpr std::pair<const char*, PeerWay> kPeerWays[] = {
    {"direct", PeerWay::direct}, {"tree", PeerWay::tree}, {"host", PeerWay::host}};

[[noreturn]] void refuse(const std::string& what) {
  throw std::invalid_argument("the machine: " + what);
}

void check_keys(const Json& json, const std::string& what, const std::set<std::string>& known) {
  if (!json.is_object()) refuse(what + " is not an object");
  for (const auto& item : json.items()) {
    if (known.count(item.key()) == 0) refuse(what + " has the unknown key '" + item.key() + "'");
  }
}

std::string text_member(const Json& json, const char* key, const std::string& what) {
  if (!json.contains(key) || !json[key].is_string() || json[key].get<std::string>().empty()) {
    refuse(fmt::format("{} needs a text '{}'", what, key));
  }
  return json[key];
}

// All numbers of a machine: microseconds, GB/s, GiB.
double number_of(const Json& json, const char* key, const std::string& what) {
  const double value = json.contains(key) && json[key].is_number() ? json[key].get<double>() : 0;
  if (!(value >= kMin && value <= kMax)) {
    refuse(fmt::format("{} needs a number '{}' from {:g} to {:g}", what, key, kMin, kMax));
  }
  return value;
}

int whole_number_of(const Json& json, const char* key, const std::string& what) {
  const double number = number_of(json, key, what);
  if (!json[key].is_number_integer() || number > 1000) {
    refuse(fmt::format("{} needs a whole number '{}' below 1000", what, key));
  }
  return static_cast<int>(number);
}

const Json& list_of(const Json& json, const char* key, const std::string& what) {
  if (!json.contains(key) || !json[key].is_array() || json[key].empty()) {
    refuse(fmt::format("{} needs a list '{}'", what, key));
  }
  return json[key];
}

MachineLink parse_link(const Json& json) {
  check_keys(json, "a link",
             {"name", "pcie", "lanes", "gb_per_second", "gb_per_second_down", "gb_per_second_up"});
  MachineLink link;
  link.name = text_member(json, "name", "a link");
  const std::string what = "link '" + link.name + "'";
  const bool pcie = json.contains("pcie"), both = json.contains("gb_per_second");
  const bool each = json.contains("gb_per_second_down");
  if (pcie + both + each != 1 || json.contains("lanes") != pcie ||
      json.contains("gb_per_second_up") != each) {
    refuse(what +
           " needs either 'pcie' and 'lanes', or 'gb_per_second', or 'gb_per_second_down' and "
           "'gb_per_second_up'");
  }
  if (pcie) {
    link.down = link.up = pcie_bytes_per_second(whole_number_of(json, "pcie", what),
                                                whole_number_of(json, "lanes", what));
  } else if (both) {
    link.down = link.up = kGiga * number_of(json, "gb_per_second", what);
  } else {
    link.down = kGiga * number_of(json, "gb_per_second_down", what);
    link.up = kGiga * number_of(json, "gb_per_second_up", what);
  }
  return link;
}

int link_named(const LinkMachine& machine, const std::string& name, const std::string& what) {
  const auto link = std::find_if(machine.links.begin(), machine.links.end(),
                                 [&](const MachineLink& each) { return each.name == name; });
  if (link == machine.links.end())
    refuse(what + " names the link '" + name + "', which is not there");
  return static_cast<int>(link - machine.links.begin());
}

MachineGpu parse_gpu(const Json& json, const LinkMachine& machine) {
  check_keys(json, "a GPU", {"name", "path", "direct", "memory_gib"});
  MachineGpu gpu;
  gpu.name = text_member(json, "name", "a GPU");
  const std::string what = "GPU '" + gpu.name + "'";
  for (const Json& link : list_of(json, "path", what)) {
    if (!link.is_string()) refuse(what + " has a 'path' that is not of names");
    const int index = link_named(machine, link, what);
    if (std::count(gpu.path.begin(), gpu.path.end(), index) > 0) {
      refuse(what + " has a link twice in its 'path'");
    }
    gpu.path.push_back(index);
  }
  if (json.contains("direct")) {
    gpu.direct = link_named(machine, text_member(json, "direct", what), what);
  }
  if (json.contains("memory_gib")) {
    gpu.memory_bytes = static_cast<int64_t>(kGiB * number_of(json, "memory_gib", what));
  }
  return gpu;
}

PeerWay peer_way(const std::string& name) {
  for (const auto& [text, way] : kPeerWays) {
    if (name == text) return way;
  }
  refuse("'peers' is '" + name + "', and not direct, tree or host");
}

const char* peer_text(PeerWay way) {
  for (const auto& [text, value] : kPeerWays) {
    if (way == value) return text;
  }
  return "";
}

template <class Part>
void check_names(const std::vector<Part>& parts, const char* what) {
  std::set<std::string> names;
  for (const Part& part : parts) {
    if (!names.insert(part.name).second) refuse(fmt::format("two {} are '{}'", what, part.name));
  }
}

}  // namespace

Route route_to_gpu(const LinkMachine& machine, int gpu) {
  Route route{{}, 1};
  for (const int link : machine.gpus[gpu].path) route.links.push_back({link, true});
  return route;
}

Route route_to_host(const LinkMachine& machine, int gpu) {
  Route route{{}, 1};
  for (const int link : machine.gpus[gpu].path) route.links.push_back({link, false});
  return route;
}

Route route_between(const LinkMachine& machine, int from, int to) {
  const MachineGpu &source = machine.gpus[from], &target = machine.gpus[to];
  if (machine.peers == PeerWay::direct) {
    return {{{source.direct, false}, {target.direct, true}}, 0};
  }
  if (machine.peers == PeerWay::host) {
    Route route = route_to_host(machine, from);
    const Route down = route_to_gpu(machine, to);
    route.links.insert(route.links.end(), down.links.begin(), down.links.end());
    route.memory += down.memory;
    return route;
  }
  // The links that both share are above the switch or the root at which the bytes turn.
  Route route;
  const auto add = [&](const MachineGpu& own, const MachineGpu& other, bool down) {
    for (const int link : own.path) {
      if (std::count(other.path.begin(), other.path.end(), link) > 0) return;
      route.links.push_back({link, down});
    }
  };
  add(source, target, false);
  add(target, source, true);
  return route;
}

double pcie_bytes_per_second(int generation, int lanes) {
  if (generation < 1 || generation > std::ssize(kLane) || lanes < 1 || lanes > 32) {
    refuse(fmt::format("PCIe {} x{}: generations are 1 to {}, lanes 1 to 32", generation, lanes,
                       kLane.size()));
  }
  return kPcieShare * kLane[generation - 1] * lanes;
}

LinkMachine parse_machine(const Json& json) {
  check_keys(json, "it",
             {"name", "source", "memory_gb_per_second", "latency_us", "peers", "links", "gpus"});
  LinkMachine machine;
  machine.name = text_member(json, "name", "it");
  if (json.contains("source")) machine.source = text_member(json, "source", "it");
  machine.memory_per_second = kGiga * number_of(json, "memory_gb_per_second", "it");
  if (json.contains("latency_us")) {
    machine.latency_seconds = 1e-6 * number_of(json, "latency_us", "it");
  }
  machine.peers = peer_way(text_member(json, "peers", "it"));
  for (const Json& link : list_of(json, "links", "it")) machine.links.push_back(parse_link(link));
  for (const Json& gpu : list_of(json, "gpus", "it")) {
    machine.gpus.push_back(parse_gpu(gpu, machine));
    if (machine.peers == PeerWay::direct && machine.gpus.back().direct < 0) {
      refuse("GPU '" + machine.gpus.back().name + "' has no link 'direct' to its peers");
    }
  }
  check_names(machine.links, "links");
  check_names(machine.gpus, "GPUs");
  return machine;
}

Json to_json(const LinkMachine& machine) {
  Json json = {{"name", machine.name}};
  if (!machine.source.empty()) json["source"] = machine.source;
  json["memory_gb_per_second"] = machine.memory_per_second / kGiga;
  if (machine.latency_seconds > 0) json["latency_us"] = 1e6 * machine.latency_seconds;
  json["peers"] = peer_text(machine.peers);
  for (const MachineLink& link : machine.links) {
    json["links"].push_back({{"name", link.name},
                             {"gb_per_second_down", link.down / kGiga},
                             {"gb_per_second_up", link.up / kGiga}});
  }
  for (const MachineGpu& gpu : machine.gpus) {
    Json entry = {{"name", gpu.name}};
    for (const int link : gpu.path) entry["path"].push_back(machine.links[link].name);
    if (gpu.direct >= 0) entry["direct"] = machine.links[gpu.direct].name;
    if (gpu.memory_bytes > 0) entry["memory_gib"] = static_cast<double>(gpu.memory_bytes) / kGiB;
    json["gpus"].push_back(std::move(entry));
  }
  return json;
}

LinkMachine find_machine(const std::string& preset_or_file) {
  std::string names;
  for (LinkMachine& preset : machine_presets()) {
    if (preset.name == preset_or_file) return std::move(preset);
    names += (names.empty() ? "" : ", ") + preset.name;
  }
  if (!std::filesystem::exists(preset_or_file)) {
    throw std::invalid_argument(fmt::format("'{}' is neither a file that can be read nor one of {}",
                                            preset_or_file, names));
  }
  try {
    return read_json_file<Json>(preset_or_file, parse_machine);
  } catch (const std::runtime_error& error) {
    throw std::invalid_argument(error.what());
  }
}

// The machines that are known by name, with the source of every figure. What has no source is an
// assumption, and LinkMachine::source, which a plan prints, says so.

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
      "4, PCIe 5 x16, memory; assumed: 80 % of NVLink's and of the memory's nominal bandwidth, 78 "
      "% of PCIe's, 16 lanes for each GPU alone, one memory for both sockets; nothing was measured";
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
