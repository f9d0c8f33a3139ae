// The control groups of this process, and the memory that they and the machine still allow it.
// Threads: any.
#pragma once

#include <cstdint>
#include <string>

namespace stoker {

// Returns this process's group ("/a/b") of a controller of version 1 ("cpu"), or of version 2 ("");
// "" if there is none. `groups`: the file that names them.
std::string control_group(const std::string& controller,
                          const std::string& groups = "/proc/self/cgroup");

// A limit may be on the process's own group or on any group above it; the smallest counts. -1: no
// limit.
struct GroupMemory {
  int64_t limit_bytes = -1;  // the smallest limit
  int64_t free_bytes = -1;   // the least that is left below a limit
};

// `root`: the folder of the control groups, version 1 or 2; `groups`: the file that names this
// process's.
GroupMemory read_group_memory(const std::string& root = "/sys/fs/cgroup",
                              const std::string& groups = "/proc/self/cgroup");

// Returns what is free of the machine's memory ("MemAvailable" of the file `meminfo`), or of the
// groups', if that is less. -1: unknown.
int64_t free_memory(const GroupMemory& groups = read_group_memory(),
                    const std::string& meminfo = "/proc/meminfo");

}  // namespace stoker
