// One batch out of a Feed, for as long as anybody looks at it: the Holder of its images. Internal
// to feed*.cc and lease.cc.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "python/core/feed.h"
#include "staging/mutex.h"

namespace stoker::python {

// What memory in development mode is filled with at its end: nobody's picture, and as a float
// -1.2e17.
inline constexpr int kPoison = 0xDB;

// A batch's memory, lent or given. The events: its readers' last work, on a GPU.
struct Loan {
  Step step = 0;
  DeviceBatch batch;  // lent; empty: `memory` is the lease's own
  std::vector<std::shared_ptr<Memory>> memory;
  std::vector<std::unique_ptr<Event>> readers;
};

// Between a Feed and its leases, either of which may outlive the other. Members in order: what a
// device made goes before it.
struct Feed::Desk {
  Desk(pid_t owner, std::shared_ptr<Device> of) : process(owner), device(std::move(of)) {}

  const pid_t process;
  const std::shared_ptr<Device> device;

  Mutex streams_mutex;
  // Other people's. Guarded, and so is their use.
  std::map<uintptr_t, std::unique_ptr<Stream>> streams GUARDED_BY(streams_mutex);

  Mutex mutex;
  std::weak_ptr<Feed> feed GUARDED_BY(mutex);
  std::vector<Loan> returned GUARDED_BY(mutex);  // lent batches that nobody looks at any more
  // Leases out. Null: the lease is in `returned`, or on its way back from there.
  std::map<Step, Lease*> held GUARDED_BY(mutex);

  bool in_child() const;
  Stream& stream(uintptr_t handle) REQUIRES(streams_mutex);
};

class Feed::Lease final : public Holder, public std::enable_shared_from_this<Feed::Lease> {
 public:
  // ready: recorded behind the bytes, and not again while the lease has none of its own; null where
  // they are there. Its images are filled with 0xDB at its end if `poisoned` bytes are not 0.
  Lease(std::shared_ptr<Desk> desk, Loan loan, std::shared_ptr<Event> ready, void* images,
        size_t poisoned);
  ~Lease() override;

  void synchronize() override;
  std::shared_ptr<void> read_on(uintptr_t stream) override;
  void copy_to_host(void* target, const void* source, size_t bytes) override;

  // `desk` is the lease's own. Clang cannot know that, so it is told not to look in here.
  Loan& loan([[maybe_unused]] Desk& desk) REQUIRES(desk.mutex) NO_THREAD_SAFETY_ANALYSIS {
    return loan_;
  }

 private:
  class Reader;
  void check_process() const;
  void end_memory(const Loan& own) noexcept;
  const std::shared_ptr<Desk> desk_;
  const std::shared_ptr<Event> ready_;
  void* const images_;
  const size_t poisoned_;
  Loan loan_ GUARDED_BY(desk_->mutex);
};

}  // namespace stoker::python
