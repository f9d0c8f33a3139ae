// A parallel loop over numbers, on its own threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

#include "staging/error_text.h"

namespace stoker {

// Calls work(state, i) for every i in [0, count), each thread with its own `state` from
// make_state(). Rethrows the first exception, after which no new call begins. Where the system
// makes fewer threads than `workers`, those that are there do all of the work, or the caller.
template <typename MakeState, typename Work>
void for_each_parallel(int64_t count, int workers, const MakeState& make_state, const Work& work) {
  std::atomic<int64_t> next{0};
  FirstError error;
  const auto run = [&] {
    try {
      auto state = make_state();
      for (int64_t i = next++; i < count; i = next++) work(state, i);
    } catch (...) {
      error.keep_current();
      next = count;
    }
  };
  {
    std::vector<std::jthread> threads;
    try {
      for (int t = 0; t < workers; ++t) threads.emplace_back(run);
    } catch (const std::system_error&) {
      if (threads.empty()) run();
    }
  }
  error.rethrow();
}

}  // namespace stoker
