#include "train/run/batch_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "staging/group_memory.h"
#include "train/engine/byte_text.h"

namespace stoker {
namespace {

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
  const int64_t in_groups = read_group_memory().free_bytes;
  return in_groups < 0 ? available_memory() : std::min(available_memory(), in_groups);
}

}  // namespace stoker
