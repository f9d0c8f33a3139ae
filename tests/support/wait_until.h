// Waiting in tests: for what is to come, and of those that are late. Functions.
#pragma once

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace stoker {

// Returns once `is_so()` is true; false: it has not become so within a minute, and never will.
template <typename Condition>
bool wait_until(Condition is_so) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!is_so()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

// Lets others go first for at most a millisecond or so. (To yield often enough would take seconds
// on a busy machine.)
inline void be_late(std::chrono::microseconds time) { std::this_thread::sleep_for(time); }

// Lasts that long, in a thread that does not sleep.
inline void spin_for(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

// Whether the thread of this process, as gettid() names it, waits for something.
inline bool is_asleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(file, text);
  const size_t name_ends = text.rfind(')');  // "12 (name) S ..."
  return name_ends != std::string::npos && text.compare(name_ends, 3, ") S") == 0;
}

inline bool others_are_asleep() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const pid_t thread = std::stoi(task.path().filename());
    if (thread != gettid() && !is_asleep(thread)) return false;
  }
  return true;
}

}  // namespace stoker
