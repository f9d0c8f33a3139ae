// One batch of a Feed, as long as anything uses it: the Holder of its images. Internal to feed*.cc
// and lease.cc.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "python/core/feed.h"
#include "staging/mutex.h"

namespace stoker::python {

// In development mode, memory is filled with this byte at its end: unlike any picture, and -1.2e17
// as a float.
inline constexpr int kPoison = 0xDB;

// A batch's memory, lent or given away. The events mark its readers' last work, on a GPU.
struct Loan {
  Step step = 0;
  DeviceBatch batch;  // lent; empty: the lease owns `memory`
  std::vector<std::shared_ptr<Memory>> memory;
  std::vector<std::unique_ptr<Event>> readers;
};

// State that a Feed and its leases share; either of them may outlive the other. The order of
// members matters: what a device made is destroyed before it.
struct Feed::LeaseTable {
  LeaseTable(pid_t owner, std::shared_ptr<Device> of) : process(owner), device(std::move(of)) {}

  const pid_t process;
  const std::shared_ptr<Device> device;

  Mutex streams_mutex;
  // Streams of other libraries. Their use is guarded, too.
  std::map<uintptr_t, std::unique_ptr<Stream>> streams GUARDED_BY(streams_mutex);

  Mutex mutex;
  std::weak_ptr<Feed> feed GUARDED_BY(mutex);
  std::vector<Loan> returned GUARDED_BY(mutex);  // lent batches that nothing uses any more
  // All leases. Null: the lease is in `returned`, or is being processed from there.
  std::map<Step, Lease*> held GUARDED_BY(mutex);

  bool in_child() const;
  Stream& stream(uintptr_t handle) REQUIRES(streams_mutex);
};

class Feed::Lease final : public Holder, public std::enable_shared_from_this<Feed::Lease> {
 public:
  // ready: recorded after the bytes, and not again while the lease has no memory of its own; null
  // if the bytes are there. If `poisoned` bytes are not 0, its images are filled with 0xDB at its
  // end.
  Lease(std::shared_ptr<LeaseTable> table, Loan loan, std::shared_ptr<Event> ready, void* images,
        size_t poisoned);
  ~Lease() override;

  void synchronize() override;
  std::shared_ptr<void> read_on(uintptr_t stream) override;
  void copy_to_host(void* target, const void* source, size_t bytes) override;

  // `table` is the lease's own. Clang cannot know that, so the analysis is off here.
  Loan& loan([[maybe_unused]] LeaseTable& table) REQUIRES(table.mutex) NO_THREAD_SAFETY_ANALYSIS {
    return loan_;
  }

 private:
  class Reader;
  void check_process() const;
  void end_memory(const Loan& own) noexcept;
  const std::shared_ptr<LeaseTable> table_;
  const std::shared_ptr<Event> ready_;
  void* const images_;
  const size_t poisoned_;
  Loan loan_ GUARDED_BY(table_->mutex);
};

}  // namespace stoker::python
