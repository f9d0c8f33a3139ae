// The machine's memory nodes and the CPUs beside each, of those that this process may use, as
// /sys/devices/system/node says. Values; any thread.
#pragma once

#include <string>
#include <vector>

namespace stoker {

struct NumaNode {
  int id = 0;
  std::vector<int> cpus;  // never empty
};

// At least one: a machine that says nothing counts as one node. Ascending ids.
std::vector<NumaNode> numa_nodes(const std::string& folder = "/sys/devices/system/node");

// "0-3,8": 0 1 2 3 8. What is not a list gives what could be read before.
std::vector<int> parse_cpu_list(const std::string& text);

// Puts the calling thread on the node's CPUs; memory that it touches first lies on the node.
void bind_thread(const NumaNode& node);

}  // namespace stoker
