#include "tools/machine/host_info.h"

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

}  // namespace

HostInfo read_host_info() {
  HostInfo info;
  info.cpu = field("/proc/cpuinfo", "model name");
  info.cpu_features = cpu_features();
  info.cores_machine = machine_cores();
  info.cores_usable = usable_cores();
  info.memory_bytes = memory_field("MemTotal");
  info.memory_available_bytes = memory_field("MemAvailable");
  info.memory_limit_bytes = std::max<int64_t>(read_group_memory().limit_bytes, 0);
  return info;
}

}  // namespace stoker
