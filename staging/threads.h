// Threads, made all or none. Where the system makes no more of them, the caller gets an error that
// says how many there were to be and what to do; it never waits for some that are missing.
#pragma once

#include <cstdint>
#include <future>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace stoker {

// The thread with this number, of `count`, could not be made. `purpose` completes "for ...".
class NoThread final : public std::runtime_error {
 public:
  NoThread(const char* purpose, int64_t number, int64_t count, const std::error_code& why)
      : std::runtime_error("cannot make thread " + std::to_string(number) + " of " +
                           std::to_string(count) + " for " + purpose + ": " + why.message() +
                           "; allow more threads (pids.max of the control group, ulimit -u) or "
                           "memory for their stacks (ulimit -v), or ask for fewer workers") {}
};

// Returns `count` threads that run work(0) ... work(count - 1), each with a copy of `work`. No work
// begins before all threads are there.
template <typename Work>
std::vector<std::jthread> start_threads(const char* purpose, int64_t count, const Work& work) {
  std::promise<bool> all_are_there;
  const std::shared_future<bool> begins = all_are_there.get_future().share();
  std::vector<std::jthread> threads;
  try {
    for (int64_t i = 0; i < count; ++i) {
      threads.emplace_back([begins, work, i] {
        if (begins.get()) work(i);
      });
    }
  } catch (const std::system_error& error) {
    all_are_there.set_value(false);
    throw NoThread(purpose, static_cast<int64_t>(threads.size()) + 1, count, error.code());
  } catch (...) {
    all_are_there.set_value(false);
    throw;
  }
  all_are_there.set_value(true);
  return threads;
}

// Returns a thread that runs work().
template <typename Work>
std::jthread start_thread(const char* purpose, Work work) {
  try {
    return std::jthread(std::move(work));
  } catch (const std::system_error& error) {
    throw NoThread(purpose, 1, 1, error.code());
  }
}

// Runs work(0) ... work(count - 1), each on a thread of its own, and returns when all have ended.
template <typename Work>
void run_threads(const char* purpose, int64_t count, const Work& work) {
  start_threads(purpose, count, work);
}

}  // namespace stoker
