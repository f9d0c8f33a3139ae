#include "tools/profile/latency.h"

#include <algorithm>
#include <numeric>

namespace stoker {

Latency latency_of(std::vector<double> values) {
  Latency result;
  result.count = std::ssize(values);
  if (values.empty()) return result;
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[std::min(values.size() - 1,
                           static_cast<size_t>(share * static_cast<double>(values.size())))];
  };
  result.mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  result.p50 = at(0.5);
  result.p90 = at(0.9);
  result.p99 = at(0.99);
  result.max = values.back();
  return result;
}

}  // namespace stoker
