#include "pipeline/store/hedge_rule.h"

#include <algorithm>

namespace stoker {
namespace {

// For fewer bytes the time says nothing of the rate.
constexpr int64_t kMinBytes = 4096;

}  // namespace

void RecentTimes::add(int64_t bytes, Duration first_byte, Duration total) {
  ranges_[next_] = {bytes, first_byte, total};
  next_ = (next_ + 1) % kRanges;
  size_ = std::min(size_ + 1, kRanges);
}

template <typename Value>
double RecentTimes::quantile(double share, Value value) const {
  if (size_ == 0) return 0;
  std::array<double, kRanges> values;
  std::transform(ranges_.begin(), ranges_.begin() + size_, values.begin(), value);
  const auto place = values.begin() + std::min(size_ - 1, static_cast<size_t>(share * size_));
  std::nth_element(values.begin(), place, values.begin() + size_);
  return *place;
}

RecentTimes::Duration RecentTimes::first_byte(double share) const {
  return Duration(static_cast<int64_t>(
      quantile(share, [](const Range& r) { return static_cast<double>(r.first_byte.count()); })));
}

RecentTimes::Duration RecentTimes::total(double share) const {
  return Duration(static_cast<int64_t>(
      quantile(share, [](const Range& r) { return static_cast<double>(r.total.count()); })));
}

double RecentTimes::per_byte(double share) const {
  return quantile(share, [](const Range& r) {
    return static_cast<double>((r.total - r.first_byte).count()) /
           static_cast<double>(std::max(r.bytes, kMinBytes));
  });
}

}  // namespace stoker
