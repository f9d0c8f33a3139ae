// Runs work that may take long, so that Ctrl-C ends it.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <future>

#include "python/core/unlocked.h"
#include "staging/threads.h"

namespace stoker::python {

inline constexpr auto kSignalPoll = std::chrono::milliseconds(50);  // between two looks for Ctrl-C

// Returns what `work(stop)` returns. It runs on another thread, so that a signal's handler can run
// on this one (Python runs handlers on its main thread alone). If the handler raises an exception,
// `stop` becomes true, and the exception is thrown when `work` has ended. REQUIRES: Python's lock,
// which is not held while this waits.
template <class Work>
auto run_interruptible(const Work& work) {
  std::atomic<bool> stop{false};
  std::packaged_task<decltype(work(stop))()> task([&] { return work(stop); });
  auto result = task.get_future();
  const std::jthread thread = start_thread("this call", [&task] { task(); });
  const auto is_done = [&] {
    const Unlocked unlocked;
    return result.wait_for(kSignalPoll) == std::future_status::ready;
  };
  while (!is_done()) {
    if (PyErr_CheckSignals() == 0) continue;
    stop = true;
    {
      const Unlocked unlocked;
      result.wait();
    }
    throw nanobind::python_error();
  }
  return result.get();
}

}  // namespace stoker::python
