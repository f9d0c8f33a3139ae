// How long the last ranges took. Owner: ObjectReader. Threads: one at a time.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace stoker {

class RecentTimes {
 public:
  using Duration = std::chrono::nanoseconds;
  static constexpr size_t kRanges = 256;

  // From the request to the first byte of the answer, and to the last one.
  void add(int64_t bytes, Duration first_byte, Duration total);
  size_t size() const { return size_; }
  // The share of ranges (0.5: the median) that were not later; 0 if there was none.
  Duration first_byte(double share) const;
  Duration total(double share) const;
  // The same of the time that a byte took after the first one, in nanoseconds.
  double per_byte(double share) const;

 private:
  struct Range {
    int64_t bytes;
    Duration first_byte, total;
  };
  template <typename Value>
  double quantile(double share, Value value) const;

  std::array<Range, kRanges> ranges_{};
  size_t size_ = 0, next_ = 0;
};

}  // namespace stoker
