// Decides which requests are so slow that the range is asked for a second time: "hedged requests"
// of Dean and Barroso, "The Tail at Scale" (Communications of the ACM, 2013). A request is slow
// when it takes longer than nearly all before: the 95th percentile of the times to the first byte,
// and that of the time per byte for each of its bytes. A request that stalls becomes slow by that,
// long before the client gives it up. Owner: ObjectReader. Threads: one at a time.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace stoker {

// How long the last ranges took. Owner: ObjectReader. Threads: one at a time.
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

class HedgeRule {
 public:
  using Duration = std::chrono::nanoseconds;
  using Time = std::chrono::steady_clock::time_point;
  static constexpr double kShare = 0.95;
  static constexpr Duration kMin = std::chrono::milliseconds(20);
  // Without enough ranges that have come: a slow server's times.
  static constexpr size_t kMinRanges = 20;
  static constexpr Duration kFirstByte = std::chrono::seconds(2);
  static constexpr double kPerByte = 1000;  // ns: 1 MB/s
  // A second request for so many first ones, and not more than kMaxAtOnce after a calm time.
  static constexpr int kFirstPerSecond = 20, kMaxAtOnce = 16;
  // And one for each such time without a first one: where everything waits for a range that stalls,
  // there are no first ones.
  static constexpr Duration kCalm = std::chrono::milliseconds(200);

  // Takes over what the last ranges say.
  void learn(const RecentTimes& times) {
    if (times.size() < kMinRanges) return;
    first_byte_ = times.first_byte(kShare);
    per_byte_ = times.per_byte(kShare);
  }
  // After this time a request for so many bytes is slow.
  Duration slow_after(int64_t bytes) const {
    const auto body = static_cast<int64_t>(per_byte_ * static_cast<double>(bytes));
    return std::max(kMin, first_byte_ + Duration(body));
  }
  void note_first_request(Time now) {
    add(1);
    calm_since_ = now;
  }
  // Returns false if there were too many second requests.
  bool take_second_request(Time now) {
    if (now - calm_since_ >= kCalm) {
      add(kFirstPerSecond);
      calm_since_ = now;
    }
    if (tokens_ < kFirstPerSecond) return false;
    tokens_ -= kFirstPerSecond;
    return true;
  }

 private:
  void add(int tokens) { tokens_ = std::min(kFirstPerSecond * kMaxAtOnce, tokens_ + tokens); }

  Duration first_byte_ = kFirstByte;
  double per_byte_ = kPerByte;
  int tokens_ = kFirstPerSecond;  // the very first request may be slow, too
  Time calm_since_{};
};

}  // namespace stoker
