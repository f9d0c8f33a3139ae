// Cores that this process may use: of its affinity, and no more than its control group's quota.
// Reads files of /proc and /sys; any thread.
#pragma once

#include <string>

namespace stoker {

double allowed_cores();  // > 0; a quota may be a part of a core
int machine_cores();     // all that are online, whoever may use them

// The least quota of control group `group` ("/a/b") and of all above it, in cores, from the cpu.max
// files under `root`; 0: no limit.
double group_quota(const std::string& root, std::string group);

// What a control group's cpu.max says ("200000 100000": 2 cores; "max 100000": 0 = no limit).
double parse_cpu_quota(const std::string& cpu_max);

}  // namespace stoker
