// The number of cores that this process may use: those of its affinity, limited by its control
// group's quota. Code that chooses a number of threads itself uses these functions. They read files
// of /proc and /sys. Threads: any.
#pragma once

#include <string>

namespace stoker {

// Returns how many threads to start if the user gave no number: at least 1; a fraction of a core
// counts as one. `processes` of one job on this machine share it: the quota is divided among them,
// and so are the cores unless the launcher has bound this process to its own.
int usable_cores(int processes = 1);

double allowed_cores();  // the same for one process, not rounded: > 0; a quota may be a fraction
int machine_cores();     // all that are online

// The limits of one process.
struct CoreLimits {
  int machine = 1;   // cores that are online
  int affinity = 1;  // the cores that this process may run on
  double quota = 0;  // in cores; 0: none
};
// `root`: the folder of the control groups, version 1 or 2; `groups`: the file that names this
// process's.
CoreLimits read_core_limits(const std::string& root = "/sys/fs/cgroup",
                            const std::string& groups = "/proc/self/cgroup");
int usable_cores(const CoreLimits& limits, int processes);

// Returns the smallest quota of control group `group` ("/a/b") and all groups above it, in cores,
// from the files under `root` (cpu.max, or cpu.cfs_quota_us of version 1); 0: no limit.
double group_quota(const std::string& root, std::string group);

// Parses a control group's cpu.max ("200000 100000": 2 cores; "max 100000": 0 = no limit).
double parse_cpu_quota(const std::string& cpu_max);

}  // namespace stoker
