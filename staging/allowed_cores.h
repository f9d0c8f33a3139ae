// The cores that this process may use: those of its affinity, and no more than its control group's
// quota. Whoever starts threads of their own accord asks here how many.
// Reads files of /proc and /sys; any thread.
#pragma once

#include <string>

namespace stoker {

// How many threads to start where nobody said: at least 1; a part of a core counts as one.
// `processes` of one job on this machine share it: a quota is divided among them, and the cores
// are where the launcher has bound this process to none of its own.
int usable_cores(int processes = 1);

double allowed_cores();  // the same exactly, for one process: > 0; a quota may be a part of a core
int machine_cores();     // all that are online, whoever may use them

// What there is to know, for one process.
struct CoreLimits {
  int machine = 1;   // cores that are online
  int affinity = 1;  // of them, those that this process may run on
  double quota = 0;  // in cores; 0: none
};
// `root`: where the control groups lie.
CoreLimits read_core_limits(const std::string& root = "/sys/fs/cgroup");
int usable_cores(const CoreLimits& limits, int processes);

// The least quota of control group `group` ("/a/b") and of all above it, in cores, from the cpu.max
// files under `root`; 0: no limit.
double group_quota(const std::string& root, std::string group);

// What a control group's cpu.max says ("200000 100000": 2 cores; "max 100000": 0 = no limit).
double parse_cpu_quota(const std::string& cpu_max);

}  // namespace stoker
