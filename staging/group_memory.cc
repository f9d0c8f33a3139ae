#include "staging/group_memory.h"

#include <algorithm>
#include <fstream>
#include <string_view>

namespace stoker {
namespace {

// Version 1 expresses "no limit" as a huge number.
constexpr int64_t kNoLimit = int64_t{1} << 60;

// Returns the number in a file, or -1: "max", or there is no such file.
int64_t number_in(const std::string& path) {
  std::ifstream file(path);
  int64_t value = 0;
  return file >> value ? value : -1;
}

int64_t lesser_bytes(int64_t a, int64_t b) { return a < 0 ? b : b < 0 ? a : std::min(a, b); }

// Adds the limits of `group` ("/a/b") and of all groups above it, up to the root.
void add(const std::string& root, std::string group, const char* limit_file, const char* use_file,
         GroupMemory& memory) {
  for (;; group = group.substr(0, group.rfind('/'))) {
    const std::string folder = root + group + "/";
    const int64_t limit = number_in(folder + limit_file);
    if (limit >= 0 && limit < kNoLimit) {
      const int64_t use = std::max<int64_t>(number_in(folder + use_file), 0);
      memory.limit_bytes = lesser_bytes(memory.limit_bytes, limit);
      memory.free_bytes = lesser_bytes(memory.free_bytes, std::max<int64_t>(limit - use, 0));
    }
    if (group.empty() || group == "/") return;
  }
}

}  // namespace

std::string control_group(const std::string& controller, const std::string& groups) {
  // The form of a line: "NUMBER:CONTROLLERS:/GROUP". Version 2 has no controllers.
  std::ifstream file(groups);
  std::string found;
  for (std::string line; std::getline(file, line);) {
    const size_t begin = line.find(':');
    const size_t end = begin == std::string::npos ? begin : line.find(':', begin + 1);
    if (end == std::string::npos) continue;
    const std::string controllers =
        std::string(",").append(line, begin + 1, end - begin - 1).append(",");
    if (controllers.find("," + controller + ",") != std::string::npos) found = line.substr(end + 1);
  }
  return found;
}

GroupMemory read_group_memory(const std::string& root, const std::string& groups) {
  GroupMemory memory;
  add(root, control_group("", groups), "memory.max", "memory.current", memory);
  add(root + "/memory", control_group("memory", groups), "memory.limit_in_bytes",
      "memory.usage_in_bytes", memory);
  return memory;
}

int64_t free_memory(const GroupMemory& groups, const std::string& meminfo) {
  std::ifstream file(meminfo);
  std::string name, unit;
  int64_t free = -1;
  for (int64_t kib = 0; file >> name >> kib; std::getline(file, unit)) {
    if (name == "MemAvailable:") free = kib << 10;
  }
  return lesser_bytes(free, groups.free_bytes);
}

}  // namespace stoker
