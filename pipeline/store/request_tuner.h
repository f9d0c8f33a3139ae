// Finds how many requests to have under way, by climbing a hill: it measures the rate of an
// interval, tries more, and keeps more only if the rate grows with it. Answers "slow down" make it
// fewer. A pure function of what it is told, with the time. Owner: ObjectReader. Threads: one at a
// time.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace stoker {

// - The rate is of bytes, and each range counts as kRangeBytes more: so ranges of all sizes have
//   one measure, in which neither the bandwidth nor the number of requests is forgotten.
// - An interval lasts several latencies and as many ranges as are wanted under way. It counts only
//   if somebody waited for bytes in it (starving) and nearly as many were under way as are wanted:
//   otherwise the rate is that of the demand.
// - A trial asks for kSmallStep more; at the beginning for twice as many, until that does not help
//   for the first time. It succeeds if the rate gains at least kGain of what the number gained,
//   over the best of the last kBases intervals before: noise must not look like a gain.
// - After a trial that failed the number is as before, and the next trial comes after a pause that
//   doubles each time, up to kLongestPause intervals. So it settles, and still notices a change.
// - Where more than kThrottledShare of the last kAnswers were "slow down" (stores say it to some
//   requests without having too many), the number is halved, not more than once in kSameBurst, and
//   then grows back by a tenth per kRecovery. A fixed number is lowered so, too. There are no
//   trials meanwhile.
class RequestTuner {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::nanoseconds;
  static constexpr int kMin = 4, kFirst = 8;
  static constexpr int64_t kRangeBytes = 64 << 10;
  static constexpr Duration kMinInterval = std::chrono::milliseconds(200);
  static constexpr int kLatencies = 4;  // in an interval, at least
  static constexpr double kSaturated = 0.75, kSmallStep = 1.25, kGain = 0.25;
  static constexpr size_t kBases = 3;
  static constexpr int kFirstPause = 2, kLongestPause = 64;
  static constexpr double kThrottledShare = 0.05, kAnswers = 256;
  static constexpr Duration kSameBurst = std::chrono::seconds(1);
  static constexpr Duration kRecovery = std::chrono::seconds(1);

  // `fixed` requests, or 0: between kMin and `most`.
  RequestTuner(int fixed, int most);
  // How many requests to have under way at `now`.
  int wanted(Time now) const;
  void set_starving(bool starving);
  // A range has come: its request took `latency`, and with it so many were under way.
  void note_range(Time now, int64_t bytes, Duration latency, int under_way);
  void note_throttled(Time now);

 private:
  void begin_interval(Time at);
  void judge(Time now, double rate);
  void try_more(Time now);
  double cap(Time now) const;  // what throttling leaves; kNoCap: it is over

  const bool is_fixed_;
  const int most_;
  int wanted_;

  bool starving_ = false;
  Duration latency_{0};  // of the last ranges: an exponential mean
  Time began_{};         // of the interval; ranges before it do not count
  double work_ = 0;      // bytes of the interval's ranges, with kRangeBytes for each
  int64_t ranges_ = 0, under_way_sum_ = 0;
  bool starved_ = false;  // in this interval

  bool in_trial_ = false, doubling_ = true;
  int before_ = 0;  // the trial
  std::vector<double> bases_;
  int pause_ = kFirstPause, intervals_to_wait_ = 0;

  double throttled_share_ = 0;  // of the last answers: an exponential mean
  double cap_ = 0;              // at capped_at_; 0: there was no throttling
  Time capped_at_{};
};

}  // namespace stoker
