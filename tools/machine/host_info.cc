#include "tools/machine/host_info.h"

#include <array>
#include <fstream>
#include <set>
#include <sstream>

#include "staging/allowed_cores.h"

namespace stoker {
namespace {

// Names as in /proc/cpuinfo: x86, then Arm.
constexpr std::array kFeatures = {"sse4_2",      "avx2",        "fma",      "f16c",
                                  "avx512f",     "avx512bw",    "avx_vnni", "avx512_vnni",
                                  "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16",
                                  "asimd",       "bf16",        "sve",      "sve2"};

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

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

// Returns the folder of this process's control group, version 2.
std::string control_group() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("0::", 0) == 0) return "/sys/fs/cgroup" + line.substr(3);
  }
  return "/sys/fs/cgroup";
}

int64_t memory_limit() {
  for (const std::string& path : {control_group() + "/memory.max",
                                  std::string("/sys/fs/cgroup/memory/memory.limit_in_bytes")}) {
    std::istringstream line(first_line(path));
    int64_t bytes = 0;
    // Version 1 expresses "no limit" as a huge number.
    if (line >> bytes && bytes > 0 && bytes < int64_t{1} << 60) return bytes;
  }
  return 0;
}

}  // namespace

HostInfo read_host_info() {
  HostInfo info;
  info.cpu = field("/proc/cpuinfo", "model name");
  info.cpu_features = cpu_features();
  info.cores_machine = machine_cores();
  info.cores_usable = usable_cores();
  info.memory_bytes = memory_field("MemTotal");
  info.memory_available_bytes = memory_field("MemAvailable");
  info.memory_limit_bytes = memory_limit();
  return info;
}

}  // namespace stoker
