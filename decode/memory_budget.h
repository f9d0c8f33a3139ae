// A bound of the memory in which pictures are decoded, shared by the threads that decode them.
//
// Each thread has a lease. Some bytes of it are its own; what it needs beyond these comes from the
// budget while one picture is made. A thread that does not get it throws OverBudget out of the
// allocation, gives back all that it has, waits until it gets the whole, and begins the picture
// again. So nobody waits while it holds what another waits for, and there is no deadlock.
//
// ScratchVector and AlignedBuffer (scratch_vector.h, aligned_buffer.h) charge the lease that the
// thread works under; ScratchCharge does it for memory that a library takes. Without a lease
// nothing is counted.
#pragma once

#include <cstdint>
#include <memory>

namespace stoker {

// MemoryLease::charge() throws it. `needed` are all bytes that the thread would have then. It is no
// std::exception: who reports those as a fault of a picture must not take it for one.
class OverBudget {
 public:
  explicit OverBudget(int64_t needed) : needed_(needed) {}
  int64_t needed() const noexcept { return needed_; }

 private:
  int64_t needed_;
};

class MemoryLease;

// From now on, blocks of 1 MiB and more that are freed go back to the system at once, in the whole
// process: glibc would keep up to 64 MiB of them for each thread.
void return_freed_memory();

// Owner: a Loader. Threads: any. It outlives its leases.
class MemoryBudget {
 public:
  explicit MemoryBudget(int64_t bytes);
  ~MemoryBudget();
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  int64_t bytes() const { return bytes_; }
  int64_t most_taken() const;
  int64_t waits() const;  // how often a thread had to wait
  // Ends all waiting; nobody gets anything any more.
  void stop();

 private:
  friend class MemoryLease;
  bool try_take(int64_t bytes);
  bool take(int64_t bytes);  // waits; false: stopped. REQUIRES: bytes <= bytes()
  void give_back(int64_t bytes);

  struct State;
  const int64_t bytes_;
  const std::unique_ptr<State> state_;
};

// Owner: one thread at a time.
class MemoryLease {
 public:
  // `own` bytes need not be asked for. A null budget has no bound.
  MemoryLease(MemoryBudget* budget, int64_t own) : budget_(budget), own_(own) {}
  ~MemoryLease() { give_back(); }
  MemoryLease(const MemoryLease&) = delete;
  MemoryLease& operator=(const MemoryLease&) = delete;

  // Throws OverBudget; then nothing is charged.
  void charge(int64_t bytes) {
    used_ += bytes;
    if (used_ > own_ + taken_) ask(bytes);
  }
  // Counts memory that is there already: it may be more than the lease has.
  void count(int64_t bytes) { used_ += bytes; }
  void refund(int64_t bytes) { used_ = used_ > bytes ? used_ - bytes : 0; }

  int64_t used() const { return used_; }
  int64_t taken() const { return taken_; }  // from the budget, the most since give_back()
  // Without a budget everything is its own.
  bool is_over_own() const { return budget_ && used_ > own_; }
  int64_t most() const;  // that it can ever have
  // Waits until the lease has so many bytes in all; false: the budget was stopped. REQUIRES: bytes
  // <= most(), and nothing is used beyond what is its own.
  bool wait_for(int64_t bytes);
  // Gives back what was taken. REQUIRES: !is_over_own(), but for the destructor.
  void give_back();

  // The lease that this thread works under, or null.
  static MemoryLease*& current();

 private:
  void ask(int64_t bytes);

  MemoryBudget* const budget_;
  const int64_t own_;
  int64_t used_ = 0;
  int64_t taken_ = 0;  // from the budget
};

// While it lives, this thread works under the lease.
class LeaseScope {
 public:
  explicit LeaseScope(MemoryLease& lease) : before_(MemoryLease::current()) {
    MemoryLease::current() = &lease;
  }
  ~LeaseScope() { MemoryLease::current() = before_; }
  LeaseScope(const LeaseScope&) = delete;
  LeaseScope& operator=(const LeaseScope&) = delete;

 private:
  MemoryLease* const before_;
};

inline void charge_scratch(int64_t bytes) {
  if (MemoryLease* lease = MemoryLease::current()) lease->charge(bytes);
}
inline void count_scratch(int64_t bytes) {
  if (MemoryLease* lease = MemoryLease::current()) lease->count(bytes);
}
inline void refund_scratch(int64_t bytes) {
  if (MemoryLease* lease = MemoryLease::current()) lease->refund(bytes);
}

// Counts what a library takes while it lives. Made before the library is called: it may throw
// OverBudget.
class ScratchCharge {
 public:
  explicit ScratchCharge(int64_t bytes) : bytes_(bytes) { charge_scratch(bytes); }
  ~ScratchCharge() { refund_scratch(bytes_); }
  ScratchCharge(const ScratchCharge&) = delete;
  ScratchCharge& operator=(const ScratchCharge&) = delete;

 private:
  const int64_t bytes_;
};

}  // namespace stoker
