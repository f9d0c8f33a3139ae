#include "pipeline/store/request_tuner.h"

#include <algorithm>
#include <cmath>

namespace stoker {
namespace {

constexpr double kRecoveryGrowth = 1.1;

double seconds_of(RequestTuner::Duration time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

RequestTuner::RequestTuner(int fixed, int most)
    : is_fixed_(fixed > 0), most_(most), wanted_(is_fixed_ ? fixed : std::min(kFirst, most)) {}

double RequestTuner::cap(Time now) const {
  if (cap_ == 0) return wanted_;
  return cap_ * std::pow(kRecoveryGrowth, seconds_of(now - capped_at_) / seconds_of(kRecovery));
}

int RequestTuner::wanted(Time now) const {
  return std::max(1, static_cast<int>(std::min<double>(wanted_, cap(now))));
}

void RequestTuner::set_starving(bool starving) {
  starving_ = starving;
  starved_ = starved_ || starving;
}

void RequestTuner::note_throttled(Time now) {
  throttled_share_ += (1 - throttled_share_) / kAnswers;
  if (throttled_share_ < kThrottledShare) return;
  if (cap_ != 0 && now - capped_at_ < kSameBurst) return;
  cap_ = std::max(std::min<double>(wanted_, cap(now)) / 2, std::min<double>(kMin, wanted_));
  capped_at_ = now;
}

void RequestTuner::begin_interval(Time at) {
  began_ = at;
  work_ = 0;
  ranges_ = under_way_sum_ = 0;
  starved_ = starving_;
}

void RequestTuner::note_range(Time now, int64_t bytes, Duration latency, int under_way) {
  throttled_share_ -= throttled_share_ / kAnswers;
  latency_ += (latency - latency_) / (latency_.count() == 0 ? 1 : 16);
  if (is_fixed_ || now < began_) return;
  if (ranges_ == 0 && began_ == Time{}) begin_interval(now);
  work_ += static_cast<double>(bytes + kRangeBytes);
  ++ranges_;
  under_way_sum_ += under_way;
  const Duration time = now - began_;
  if (time < std::max(kMinInterval, kLatencies * latency_) || ranges_ < wanted_) return;
  const bool is_saturated =
      static_cast<double>(under_way_sum_) >= kSaturated * wanted_ * static_cast<double>(ranges_);
  const bool is_capped = cap(now) < wanted_;
  const double rate = work_ / seconds_of(time);
  const bool counts = starved_ && is_saturated && !is_capped;
  begin_interval(now);
  if (counts) judge(now, rate);
}

void RequestTuner::judge(Time now, double rate) {
  if (in_trial_) {
    in_trial_ = false;
    const double needed = 1 + kGain * (static_cast<double>(wanted_) / before_ - 1);
    if (rate >= needed * *std::max_element(bases_.begin(), bases_.end())) {
      bases_ = {rate};
      pause_ = kFirstPause;
      try_more(now);
      return;
    }
    wanted_ = before_;
    doubling_ = false;
    intervals_to_wait_ = pause_;
    pause_ = std::min(2 * pause_, kLongestPause);
    begin_interval(now + latency_);
    return;
  }
  if (bases_.size() == kBases) bases_.erase(bases_.begin());
  bases_.push_back(rate);
  if (intervals_to_wait_ > 0) {
    --intervals_to_wait_;
  } else {
    try_more(now);
  }
}

void RequestTuner::try_more(Time now) {
  const double more = std::ceil(wanted_ * (doubling_ ? 2 : kSmallStep));
  const int next = static_cast<int>(std::min<double>(more, most_));
  if (next == wanted_) return;
  before_ = wanted_;
  wanted_ = next;
  in_trial_ = true;
  // Requests from before the change do not belong to the trial.
  begin_interval(now + latency_);
}

}  // namespace stoker
