// Times of files, by which cached lists see that something changed.
#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>

namespace stoker {

inline int64_t nanoseconds_of(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

inline int64_t system_now_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

// A file that changed within this time before it was listed may change again with the same time
// stamps: file systems keep time in steps of up to two seconds. Such a list is not kept.
inline constexpr int64_t kSettleNs = 2'000'000'000;

}  // namespace stoker
