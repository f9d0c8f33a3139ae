#include "bench/suite/step_times.h"

#include <algorithm>
#include <vector>

#include "bench/report/statistics.h"

namespace stoker {

StepWarmUp warm_up_of(std::span<const double> ends) {
  std::vector<double> lengths;
  for (size_t i = 0; i < ends.size(); ++i) lengths.push_back(ends[i] - (i > 0 ? ends[i - 1] : 0));
  const auto half = static_cast<ptrdiff_t>(lengths.size() / 2);
  const double most = kWarmFactor * median({lengths.begin() + half, lengths.end()});
  for (size_t first = 0; first < lengths.size(); ++first) {
    const auto begin = lengths.begin() + static_cast<ptrdiff_t>(first);
    const auto end = begin + std::min<ptrdiff_t>(kWarmSteps, lengths.end() - begin);
    if (std::all_of(begin, end, [&](double length) { return length <= most; })) {
      return {static_cast<int64_t>(first), first > 0 ? ends[first - 1] : 0};
    }
  }
  return {static_cast<int64_t>(ends.size()), ends.back()};
}

}  // namespace stoker
