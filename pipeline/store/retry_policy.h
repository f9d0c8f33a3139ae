// When a failed request is tried again: ranges by ObjectReader, which owns a RetryBudget and calls
// with one thread at a time; what a caller waits for by StoreAsker.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>

#include "pipeline/store/object_store.h"

namespace stoker {

// Returns how long to wait before the next try of a request that failed `failures` times: a random
// share (`random` in [0, 1)) of a time that doubles with each failure. This is "full jitter" of
// Marc Brooker, "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015): it spreads clients
// that have failed together.
inline std::chrono::nanoseconds retry_wait(int failures, double random) {
  constexpr double kFirst = 0.1, kLongest = 20;  // seconds
  const double longest = std::min(kLongest, kFirst * std::pow(2.0, failures - 1));
  return std::chrono::nanoseconds(static_cast<int64_t>(longest * random * 1e9));
}

// Limits the retries of all requests together, so that a server in trouble does not get several
// times the load. This is a token bucket with the numbers of the AWS SDKs' standard mode: a retry
// takes kCost of kTokens, an answer gives kGain back. The SDKs let a request fail when the bucket
// is empty. Here its retry waits until kPerSecond has filled it: a run that ends costs more than
// one that waits.
class RetryBudget {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr double kTokens = 500, kCost = 5, kGain = 1, kPerSecond = 100;

  // Takes a retry's tokens. Returns how long it must wait for them.
  std::chrono::nanoseconds take(Time now) {
    if (last_ != Time{}) add(kPerSecond * std::chrono::duration<double>(now - last_).count());
    last_ = now;
    tokens_ -= kCost;
    const double missing = std::max(0.0, -tokens_);
    return std::chrono::nanoseconds(static_cast<int64_t>(missing / kPerSecond * 1e9));
  }
  void note_success() { add(kGain); }

 private:
  void add(double tokens) { tokens_ = std::min(kTokens, tokens_ + tokens); }

  double tokens_ = kTokens;
  Time last_{};
};

// Makes requests that a caller waits for: lists and what objects there are. Threads: any but the
// client's.
class StoreAsker {
 public:
  // `tries`: how often a request is tried.
  StoreAsker(HttpClient& client, int tries) : client_(client), tries_(tries) {}

  // Makes a request, and judges its answer; makes another one until the answer is fine. Throws
  // StoreError with the judgement's problem.
  HttpAnswer ask(const std::function<HttpRequest()>& make,
                 const std::function<Judgement(const HttpAnswer& answer)>& judge) const;

 private:
  HttpClient& client_;
  const int tries_;
  mutable std::atomic<bool> was_answered_ = false;
};

}  // namespace stoker
