#include "python/core/lease.h"

#include <unistd.h>

#include <atomic>
#include <cstring>
#include <optional>

#include "python/core/python_lock.h"

namespace stoker::python {
namespace {

// Unlike a std::thread::id, the number is never used again.
int64_t thread_number() {
  static std::atomic<int64_t> threads{0};
  thread_local const int64_t number = ++threads;
  return number;
}

}  // namespace

bool Feed::LeaseTable::in_child() const { return getpid() != process; }

Stream& Feed::LeaseTable::stream(uintptr_t handle) {
  auto& stream = streams[handle];
  if (!stream) stream = device->borrow_stream(reinterpret_cast<void*>(handle));
  return *stream;
}

// A library's use of a lease on one of its streams. Its destructor records an event on the stream,
// and the batch is filled again only after that event.
class Feed::Lease::Reader {
 public:
  Reader(std::shared_ptr<Lease> lease, uintptr_t stream)
      : lease_(std::move(lease)),
        table_(*lease_->table_),
        stream_(stream),
        thread_(thread_number()),
        done_(table_.device->make_event()) {
    MutexLock lock(table_.streams_mutex);
    table_.stream(stream_).wait(*lease_->ready_);
  }
  ~Reader() {
    if (table_.in_child()) {
      (void)done_.release();
      return;
    }
    try {
      mark();
    } catch (const std::exception&) {
      // A failed device keeps failing: next() reports it.
    }
    MutexLock lock(table_.mutex);
    lease_->loan_.readers.push_back(std::move(done_));
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

 private:
  void mark() {
    try {
      MutexLock lock(table_.streams_mutex);
      marked_stream().record(*done_);
    } catch (const BorrowedStreamError&) {
      // Its owner has destroyed it, but its work may continue, and nothing else tells when that
      // ends.
      std::optional<Unlocked> unlocked;  // what a stream runs may need Python's lock
      if (holds_python_lock()) unlocked.emplace();
      table_.device->wait_for_everyone();
    }
  }

  // A thread's default stream has no handle on another thread. The legacy default stream waits for
  // those of all threads when it is given an event to wait for (CUDA driver API, "Stream
  // synchronization behavior").
  Stream& marked_stream() REQUIRES(table_.streams_mutex) {
    if (stream_ != kPerThreadStream || thread_ == thread_number()) return table_.stream(stream_);
    Stream& legacy = table_.stream(kLegacyStream);
    legacy.wait(*lease_->ready_);
    return legacy;
  }

  const std::shared_ptr<Lease> lease_;
  LeaseTable& table_;
  const uintptr_t stream_;
  const int64_t thread_;  // the thread that made it, whose default stream is meant
  std::unique_ptr<Event> done_;
};

Feed::Lease::Lease(std::shared_ptr<LeaseTable> table, Loan loan, std::shared_ptr<Event> ready,
                   void* images, size_t poisoned)
    : table_(std::move(table)),
      ready_(std::move(ready)),
      images_(images),
      poisoned_(poisoned),
      loan_(std::move(loan)) {
  if (!loan_.batch) return;
  MutexLock lock(table_->mutex);
  table_->held.emplace(loan_.step, this);
}

Feed::Lease::~Lease() {
  if (table_->in_child()) {
    new Loan(std::move(loan_));
    new std::shared_ptr<LeaseTable>(table_);
    return;
  }
  std::shared_ptr<Feed> feed;
  {
    MutexLock lock(table_->mutex);
    if (loan_.batch) {
      table_->held[loan_.step] = nullptr;
      table_->returned.push_back(std::move(loan_));
      feed = table_->feed.lock();
    } else {
      table_->held.erase(loan_.step);
    }
  }
  if (feed) feed->drain_soon();
  if (!loan_.memory.empty()) end_memory(loan_);
}

// Frees the memory when nothing reads it any more, not even through its own address.
void Feed::Lease::end_memory(const Loan& own) noexcept {
  if (!ready_) {
    if (poisoned_ > 0) std::memset(images_, kPoison, poisoned_);
    return;
  }
  std::optional<Unlocked> unlocked;  // what a stream runs may need Python's lock
  if (holds_python_lock()) unlocked.emplace();
  try {
    for (const auto& reader : own.readers) reader->synchronize();
  } catch (const std::exception&) {
    // A failed device runs nothing more.
  }
}

void Feed::Lease::check_process() const {
  if (!table_->in_child()) return;
  throw std::runtime_error("this batch belongs to process " + std::to_string(table_->process) +
                           "; a child made by fork() makes a Loader of its own");
}

void Feed::Lease::synchronize() {
  check_process();
  if (ready_) ready_->synchronize();
}

std::shared_ptr<void> Feed::Lease::read_on(uintptr_t stream) {
  check_process();
  return std::make_shared<Reader>(shared_from_this(), stream);
}

void Feed::Lease::copy_to_host(void* target, const void* source, size_t bytes) {
  synchronize();
  if (table_->device->host_accessible()) {
    std::memcpy(target, source, bytes);
    return;
  }
  const auto stream = table_->device->make_stream();
  stream->copy(target, source, bytes, CopyKind::device_to_host);
  stream->synchronize();
}

}  // namespace stoker::python
