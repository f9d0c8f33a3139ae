#include "decode/memory_budget.h"

#include <malloc.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace stoker {

void return_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  mallopt(M_TRIM_THRESHOLD, 2 << 20);
#endif
}

struct MemoryBudget::State {
  std::mutex mutex;
  std::condition_variable given_back;
  int64_t taken = 0, most_taken = 0, waits = 0;
  bool is_stopped = false;
};

MemoryBudget::MemoryBudget(int64_t bytes) : bytes_(bytes), state_(std::make_unique<State>()) {}
MemoryBudget::~MemoryBudget() = default;

int64_t MemoryBudget::most_taken() const {
  const std::lock_guard lock(state_->mutex);
  return state_->most_taken;
}

int64_t MemoryBudget::waits() const {
  const std::lock_guard lock(state_->mutex);
  return state_->waits;
}

void MemoryBudget::stop() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_stopped = true;
  }
  state_->given_back.notify_all();
}

bool MemoryBudget::try_take(int64_t bytes) {
  const std::lock_guard lock(state_->mutex);
  if (state_->taken + bytes > bytes_) return false;
  state_->taken += bytes;
  state_->most_taken = std::max(state_->most_taken, state_->taken);
  return true;
}

// Who needs little may go before who needs much and came first. The latter gets its turn: the steps
// of a feed end, and its row is one of them.
bool MemoryBudget::take(int64_t bytes) {
  std::unique_lock lock(state_->mutex);
  if (state_->taken + bytes > bytes_) ++state_->waits;
  state_->given_back.wait(lock,
                          [&] { return state_->is_stopped || state_->taken + bytes <= bytes_; });
  if (state_->is_stopped) return false;
  state_->taken += bytes;
  state_->most_taken = std::max(state_->most_taken, state_->taken);
  return true;
}

void MemoryBudget::give_back(int64_t bytes) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->taken -= bytes;
  }
  state_->given_back.notify_all();
}

MemoryLease*& MemoryLease::current() {
  thread_local MemoryLease* lease = nullptr;
  return lease;
}

int64_t MemoryLease::most() const { return own_ + (budget_ ? budget_->bytes() : 0); }

bool MemoryLease::can_have(int64_t bytes) const { return !budget_ || bytes <= most(); }

void MemoryLease::ask(int64_t bytes) {
  if (!budget_) return;
  const int64_t lacking = used_ - own_ - taken_;
  if (budget_->try_take(lacking)) {
    taken_ += lacking;
    return;
  }
  const int64_t needed = used_;
  used_ -= bytes;
  throw OverBudget(needed);
}

bool MemoryLease::wait_for(int64_t bytes) {
  give_back();
  const int64_t lacking = bytes - own_;
  if (!budget_ || lacking <= 0) return true;
  if (!budget_->take(lacking)) return false;
  taken_ = lacking;
  return true;
}

void MemoryLease::give_back() {
  if (taken_ == 0) return;
  budget_->give_back(taken_);
  taken_ = 0;
}

}  // namespace stoker
