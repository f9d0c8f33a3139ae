#include "tools/machine/machine.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <nlohmann/json.hpp>

#include "tools/machine/build_commit.h"
#include "tools/machine/build_info.h"
#include "tools/machine/host_info.h"

namespace stoker {
namespace {

using Json = nlohmann::ordered_json;

std::string system_name() {
  utsname name{};
  if (uname(&name) != 0) return "";
  return fmt::format("{} {} {}", name.sysname, name.release, name.machine);
}

Json gpu_list() {
  const GpuInfo gpus = read_gpu_info();
  Json list = Json::array();
  for (size_t i = 0; i < gpus.cuda.devices.size(); ++i) {
    const CudaDeviceInfo& device = gpus.cuda.devices[i];
    list.push_back({{"name", device.name},
                    {"model", device.model},
                    {"memory_bytes", device.memory_bytes},
                    {"numa_node", device.numa_node},
                    {"links", text_of(gpus.links.links[i])}});
  }
  return list;
}

Json libraries() {
  Json found = Json::object();
  for (const BuildLibrary& library : kBuildLibraries) {
    if (*library.version) found[library.name] = library.version;
  }
  return found;
}

}  // namespace

Json describe_machine() {
  const HostInfo host = read_host_info();
  return {{"date", fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(std::time(nullptr)))},
          {"cpu", host.cpu.empty() ? "unknown" : host.cpu},
          {"cores_usable", host.cores_usable},
          {"cores_machine", host.cores_machine},
          {"memory_bytes", host.memory_bytes},
          {"system", system_name()},
          {"gpus", gpu_list()},
          {"version", kBuildVersion},
          {"commit", kBuildCommit},
          {"build", kBuildType},
          {"compiler", kBuildCompiler},
          {"libraries", libraries()}};
}

Json describe_neighbours(const MachineLoad& change, int cores) {
  if (change.busy_ns < 0 || change.own_cpu_ns < 0 || change.time_ns <= 0 || cores < 1) {
    return Json::object();
  }
  const double others =
      static_cast<double>(std::max<int64_t>(change.busy_ns - change.own_cpu_ns, 0));
  const double share = others / (static_cast<double>(change.time_ns) * cores);
  return {{"share", share}, {"quiet", share <= kQuietShare}, {"limit", kQuietShare}};
}

std::string machine_line(const Json& machine) {
  std::string line =
      fmt::format("{}, {} of {} cores", machine.value("cpu", ""), machine.value("cores_usable", 0),
                  machine.value("cores_machine", 0));
  for (const Json& gpu : machine.value("gpus", Json::array()))
    line += "; " + gpu.value("model", "");
  line += fmt::format("; stoker {} ({}); {}", machine.value("version", ""),
                      machine.value("commit", ""), machine.value("date", ""));
  const Json neighbours = machine.value("neighbours", Json::object());
  if (neighbours.empty()) return line;
  return line + fmt::format("; {}: others took {:.1f}% of the cores' time",
                            neighbours.at("quiet").get<bool>() ? "quiet" : "not quiet",
                            100 * neighbours.at("share").get<double>());
}

}  // namespace stoker
