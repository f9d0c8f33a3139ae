#include "bench/allowed_cores.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace stoker {
namespace {

constexpr double kNoLimit = 1e9;

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Of this process, version 2: "/" or "/a/b"; "" if unknown.
std::string control_group() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("0::", 0) == 0) return line.substr(3);
  }
  return "";
}

double limit_of(const std::string& cpu_max) {
  const double cores = parse_cpu_quota(cpu_max);
  return cores > 0 ? cores : kNoLimit;
}

// The least of the group's and of all above it (version 2), or version 1's.
double quota_cores() {
  const std::string v1 = "/sys/fs/cgroup/cpu/cpu.cfs_";
  double cores = limit_of(first_line(v1 + "quota_us") + " " + first_line(v1 + "period_us"));
  for (std::string group = control_group();; group = group.substr(0, group.rfind('/'))) {
    cores = std::min(cores, limit_of(first_line("/sys/fs/cgroup" + group + "/cpu.max")));
    if (group.empty() || group == "/") return cores;
  }
}

}  // namespace

double parse_cpu_quota(const std::string& cpu_max) {
  std::istringstream line(cpu_max);
  double quota = 0, period = 0;
  return line >> quota >> period && quota > 0 && period > 0 ? quota / period : 0;
}

double allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  double cores = static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
  if (sched_getaffinity(0, sizeof set, &set) == 0) cores = CPU_COUNT(&set);
  return std::min(cores, quota_cores());
}

}  // namespace stoker
