// The machine's NUMA nodes and their CPUs that this process may use, from /sys/devices/system/node.
// Values; any thread.
#pragma once

#include <string>
#include <vector>

namespace stoker {

struct NumaNode {
  int id = 0;
  std::vector<int> cpus;  // never empty
};

// Returns at least one node, in ascending order of ids: without information the machine is one
// node.
std::vector<NumaNode> numa_nodes(const std::string& folder = "/sys/devices/system/node");

// Parses "0-3,8" to 0 1 2 3 8. Stops at the first part that is not a number or a range.
std::vector<int> parse_cpu_list(const std::string& text);

// Binds the calling thread to the node's CPUs; memory that it touches first is then on the node.
void bind_thread(const NumaNode& node);

}  // namespace stoker
