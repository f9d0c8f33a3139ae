// Where a fixed number of threads wait for each other, again and again. Owner: whoever makes the
// threads meet; it outlives their waits. Threads: any.
#pragma once

#include <cstdint>
#include <string>

#include "staging/mutex.h"

namespace stoker {

class Barrier {
 public:
  explicit Barrier(int size) : size_(size) {}  // REQUIRES: size >= 1

  // Blocks until all threads have called it. What a thread wrote before is visible to all after.
  // Throws std::runtime_error with the reason if someone has called abort().
  void wait();
  // Wakes every waiting thread; these and all later calls of wait() throw. The first reason counts.
  void abort(const std::string& reason) noexcept;

 private:
  [[noreturn]] void throw_aborted() const REQUIRES(mutex_);

  const int size_;
  Mutex mutex_;
  CondVar all_here_;
  int arrived_ GUARDED_BY(mutex_) = 0;
  uint64_t round_ GUARDED_BY(mutex_) = 0;
  bool aborted_ GUARDED_BY(mutex_) = false;
  std::string reason_ GUARDED_BY(mutex_);
};

}  // namespace stoker
