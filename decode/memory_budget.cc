#include "decode/memory_budget.h"

#include <malloc.h>

#include <algorithm>

#include "staging/mutex.h"

namespace stoker {

void return_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  mallopt(M_TRIM_THRESHOLD, 2 << 20);
#endif
}

struct MemoryBudget::State {
  Mutex mutex;
  CondVar given_back;
  int64_t taken GUARDED_BY(mutex) = 0, most_taken GUARDED_BY(mutex) = 0;
  int64_t waits GUARDED_BY(mutex) = 0;
  bool is_stopped GUARDED_BY(mutex) = false;

  bool has(int64_t bytes, int64_t all) const REQUIRES(mutex) { return taken + bytes <= all; }
  void take(int64_t bytes) REQUIRES(mutex) {
    taken += bytes;
    most_taken = std::max(most_taken, taken);
  }
};

MemoryBudget::MemoryBudget(int64_t bytes) : bytes_(bytes), state_(std::make_unique<State>()) {}
MemoryBudget::~MemoryBudget() = default;

int64_t MemoryBudget::most_taken() const {
  const MutexLock lock(state_->mutex);
  return state_->most_taken;
}

int64_t MemoryBudget::waits() const {
  const MutexLock lock(state_->mutex);
  return state_->waits;
}

void MemoryBudget::stop() {
  {
    const MutexLock lock(state_->mutex);
    state_->is_stopped = true;
  }
  state_->given_back.notify_all();
}

bool MemoryBudget::try_take(int64_t bytes) {
  const MutexLock lock(state_->mutex);
  if (!state_->has(bytes, bytes_)) return false;
  state_->take(bytes);
  return true;
}

// Who needs little may go before who needs much and came first. The latter gets its turn: the steps
// of a feed end, and its row is one of them.
bool MemoryBudget::take(int64_t bytes) {
  State& state = *state_;
  MutexLock lock(state.mutex);
  if (!state.has(bytes, bytes_)) ++state.waits;
  while (!state.is_stopped && !state.has(bytes, bytes_)) state.given_back.wait(lock);
  if (state.is_stopped) return false;
  state.take(bytes);
  return true;
}

void MemoryBudget::give_back(int64_t bytes) {
  {
    const MutexLock lock(state_->mutex);
    state_->taken -= bytes;
  }
  state_->given_back.notify_all();
}

MemoryLease*& MemoryLease::current() {
  thread_local MemoryLease* lease = nullptr;
  return lease;
}

int64_t MemoryLease::most() const { return own_ + (budget_ ? budget_->bytes() : 0); }

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
