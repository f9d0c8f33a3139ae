#include "staging/allowed_cores.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "staging/group_memory.h"

namespace stoker {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Returns the smaller of two limits; 0 means no limit.
double lesser_limit(double a, double b) { return a > 0 && b > 0 ? std::min(a, b) : std::max(a, b); }

// Returns the quota in the folder of a group, whichever version has its files.
double quota_in(const std::string& folder) {
  const std::string begin = folder + "/cpu.cfs_";
  return lesser_limit(
      parse_cpu_quota(first_line(folder + "/cpu.max")),
      parse_cpu_quota(first_line(begin + "quota_us") + " " + first_line(begin + "period_us")));
}

}  // namespace

double parse_cpu_quota(const std::string& cpu_max) {
  std::istringstream line(cpu_max);
  double quota = 0, period = 0;
  return line >> quota >> period && quota > 0 && period > 0 ? quota / period : 0;
}

double group_quota(const std::string& root, std::string group) {
  double cores = 0;
  for (;; group = group.substr(0, group.rfind('/'))) {
    cores = lesser_limit(cores, quota_in(root + group));
    if (group.empty() || group == "/") return cores;
  }
}

int machine_cores() { return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN))); }

CoreLimits read_core_limits(const std::string& root, const std::string& groups) {
  CoreLimits limits;
  limits.machine = limits.affinity = machine_cores();
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) limits.affinity = CPU_COUNT(&set);
  limits.quota = lesser_limit(group_quota(root, control_group("", groups)),
                              group_quota(root + "/cpu", control_group("cpu", groups)));
  return limits;
}

int usable_cores(const CoreLimits& limits, int processes) {
  const int sharing = std::max(processes, 1);
  const bool bound = limits.affinity < limits.machine;
  const int cores = bound ? limits.affinity : limits.machine / sharing;
  const int quota = static_cast<int>(std::ceil(limits.quota / sharing));
  return std::max(1, limits.quota > 0 ? std::min(cores, quota) : cores);
}

int usable_cores(int processes) { return usable_cores(read_core_limits(), processes); }

double allowed_cores() {
  const CoreLimits limits = read_core_limits();
  return lesser_limit(limits.affinity, limits.quota);
}

}  // namespace stoker
