// The part of this machine that the process may use: cores, memory, instruction sets. Reads only
// files of /proc and /sys. Values; any thread. (GPUs: staging/device_list.h, host_info_links.h.)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stoker {

struct HostInfo {
  std::string cpu;                        // model name; "" if unknown
  std::vector<std::string> cpu_features;  // those that stoker or its libraries use
  int cores_machine = 0;                  // online
  int cores_usable = 0;                   // what affinity and the control group's quota leave
  int64_t memory_bytes = 0;
  int64_t memory_available_bytes = 0;
  int64_t memory_limit_bytes = 0;  // of the control group; 0: none
};

HostInfo read_host_info();

}  // namespace stoker
