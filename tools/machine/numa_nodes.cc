#include "tools/machine/numa_nodes.h"

#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace stoker {
namespace {

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace

std::vector<int> parse_cpu_list(const std::string& text) {
  std::vector<int> cpus;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    std::istringstream range(part);
    int first = 0, last = 0;
    char dash = 0;
    if (!(range >> first)) break;
    if (!(range >> dash >> last)) last = first;
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

std::vector<NumaNode> numa_nodes(const std::string& folder) {
  const std::vector<int> allowed = allowed_cpus();
  std::vector<NumaNode> nodes;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(folder, missing)) {
    const std::string name = entry.path().filename();
    if (name.rfind("node", 0) != 0 || name.find_first_not_of("0123456789", 4) != name.npos)
      continue;
    std::ifstream file(entry.path() / "cpulist");
    std::string list;
    std::getline(file, list);
    NumaNode node{std::atoi(name.c_str() + 4), {}};
    for (const int cpu : parse_cpu_list(list)) {
      if (std::binary_search(allowed.begin(), allowed.end(), cpu)) node.cpus.push_back(cpu);
    }
    if (!node.cpus.empty()) nodes.push_back(std::move(node));
  }
  std::sort(nodes.begin(), nodes.end(),
            [](const NumaNode& a, const NumaNode& b) { return a.id < b.id; });
  if (nodes.empty()) nodes.push_back({0, allowed});
  return nodes;
}

void bind_thread(const NumaNode& node) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : node.cpus) CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

}  // namespace stoker
