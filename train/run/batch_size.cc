#include "train/run/batch_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "train/engine/byte_text.h"

namespace stoker {
namespace {

// Returns the number in a file; without one ("max", or no such file) there is no limit.
int64_t number_in(const std::string& path) {
  std::ifstream file(path);
  int64_t value = 0;
  return file >> value ? value : std::numeric_limits<int64_t>::max();
}

int64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    int64_t kibibytes = 0;
    if (words >> name >> kibibytes && name == "MemAvailable:") return kibibytes * 1024;
  }
  return std::numeric_limits<int64_t>::max();
}

// Returns the folder of this process's control group, version 2.
std::string control_group() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("0::", 0) == 0) return "/sys/fs/cgroup" + line.substr(3);
  }
  return "/sys/fs/cgroup";
}

int64_t free_in_group(const std::string& limit_file, const std::string& use_file) {
  const int64_t limit = number_in(limit_file), use = number_in(use_file);
  if (limit == std::numeric_limits<int64_t>::max()) return limit;
  return use < limit ? limit - use : 0;
}

}  // namespace

BatchChoice largest_batch(const BatchLimits& limits) {
  const auto fits = [&](int64_t steps) {
    return limits.bytes(steps * limits.step) <= limits.memory_bytes;
  };
  if (!fits(1)) {
    throw std::runtime_error(fmt::format(
        "batch: auto: not even {} samples per device fit: they take {}, and {} are {}", limits.step,
        gibibytes(limits.bytes(limits.step)), limits.memory_name, gibibytes(limits.memory_bytes)));
  }
  const int64_t most = std::max<int64_t>(limits.most_rows / limits.step, 1);
  int64_t good = 1, bad = most + 1;
  while (bad - good > 1) {
    const int64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  BatchChoice choice;
  choice.rows = good * limits.step;
  const int64_t next = choice.rows + limits.step;
  const std::string why_no_more =
      good < most ? fmt::format("{} samples would take {}", next, gibibytes(limits.bytes(next)))
                  : "no more because of " + limits.most_name;
  choice.reason =
      fmt::format("{} samples per device, the most that fit: they take {} of {} ({}); {}",
                  choice.rows, gibibytes(limits.bytes(choice.rows)), gibibytes(limits.memory_bytes),
                  limits.memory_name, why_no_more);
  return choice;
}

int64_t free_host_bytes() {
  const std::string group = control_group(), old = "/sys/fs/cgroup/memory/memory.";
  return std::min({available_memory(),
                   free_in_group(group + "/memory.max", group + "/memory.current"),
                   free_in_group(old + "limit_in_bytes", old + "usage_in_bytes")});
}

}  // namespace stoker
