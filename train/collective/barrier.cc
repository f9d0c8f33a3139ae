#include "train/collective/barrier.h"

#include <stdexcept>

namespace stoker {

void Barrier::wait() {
  MutexLock lock(mutex_);
  if (aborted_) throw_aborted();
  if (++arrived_ == size_) {
    arrived_ = 0;
    ++round_;
    all_here_.notify_all();
    return;
  }
  const uint64_t round = round_;
  while (round_ == round && !aborted_) all_here_.wait(lock);
  if (round_ == round) throw_aborted();
}

void Barrier::abort(const std::string& reason) noexcept {
  const MutexLock lock(mutex_);
  if (aborted_) return;
  aborted_ = true;
  reason_ = reason;
  all_here_.notify_all();
}

void Barrier::throw_aborted() const { throw std::runtime_error(reason_); }

}  // namespace stoker
