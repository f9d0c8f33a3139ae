#include "python/core/lease.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace stoker::python {
namespace {

// Unlike a std::thread::id it is never used again.
int64_t thread_number() {
  static std::atomic<int64_t> threads{0};
  thread_local const int64_t number = ++threads;
  return number;
}

}  // namespace

// A library's hold on a lease by way of one of its streams. Its end marks the stream, and the batch
// goes back behind that mark.
class Feed::Reader {
 public:
  Reader(std::shared_ptr<Lease> lease, uintptr_t stream)
      : lease_(std::move(lease)),
        feed_(*lease_->feed_),
        stream_(stream),
        thread_(thread_number()),
        done_(feed_.device_->make_event()) {
    std::lock_guard lock(feed_.borrowed_mutex_);
    feed_.borrowed(stream_).wait(lease_->ready_);
  }
  ~Reader() {
    if (feed_.in_child()) {
      (void)done_.release();
      return;
    }
    try {
      std::lock_guard lock(feed_.borrowed_mutex_);
      marked_stream().record(*done_);
    } catch (const std::exception&) {
      // A device that failed keeps failing: next() says so.
    }
    std::lock_guard lock(lease_->mutex_);
    lease_->returned_.readers.push_back(std::move(done_));
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

 private:
  // A thread's default stream has no name on another thread. The legacy default stream waits for
  // those of all threads where it is given an event to wait for (CUDA driver API, "Stream
  // synchronization behavior"). REQUIRES: borrowed_mutex_ held.
  Stream& marked_stream() {
    if (stream_ != kPerThreadStream || thread_ == thread_number()) return feed_.borrowed(stream_);
    Stream& legacy = feed_.borrowed(kLegacyStream);
    legacy.wait(lease_->ready_);
    return legacy;
  }

  const std::shared_ptr<Lease> lease_;
  Feed& feed_;
  const uintptr_t stream_;
  const int64_t thread_;  // that made it: whose default stream is meant
  std::unique_ptr<Event> done_;
};

Feed::Lease::Lease(std::shared_ptr<Feed> feed, DeviceBatch batch, Step step, const Event& ready)
    : feed_(std::move(feed)), ready_(ready) {
  returned_.batch = std::move(batch);
  returned_.step = step;
}

Feed::Lease::~Lease() { feed_->give_back(std::move(returned_)); }

// A lease's step is the generation of its memory: what looks at it must see no other.
void Feed::Lease::check() const {
  feed_->check_process();
  const Step lent = feed_->lent_[feed_->slot_of(returned_.step)];
  if (lent == returned_.step) return;
  std::fprintf(stderr, "stoker: the memory of step %lld was given to step %lld while it was held\n",
               static_cast<long long>(returned_.step), static_cast<long long>(lent));
  std::abort();
}

void Feed::Lease::synchronize() {
  check();
  ready_.synchronize();
}

std::shared_ptr<void> Feed::Lease::read_on(uintptr_t stream) {
  check();
  return std::make_shared<Reader>(shared_from_this(), stream);
}

void Feed::Lease::copy_to_host(void* target, const void* source, size_t bytes) {
  synchronize();
  if (feed_->device_->host_accessible()) {
    std::memcpy(target, source, bytes);
    return;
  }
  const auto stream = feed_->device_->make_stream();
  stream->copy(target, source, bytes, CopyKind::device_to_host);
  stream->synchronize();
}

}  // namespace stoker::python
