#include "pipeline/source/growing_source.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "staging/mutex.h"
#include "staging/threads.h"

namespace stoker {
namespace {

constexpr std::chrono::milliseconds kGrowAskAfter{50};  // between two calls of go_on()

}  // namespace

struct GrowingSource::Impl {
  const std::string root;
  const std::function<void()> cancel;
  Mutex mutex;
  CondVar changed;
  std::shared_ptr<const Source> first GUARDED_BY(mutex);
  int64_t wanted GUARDED_BY(mutex) = 0;  // somebody waits for a source of more samples than this
  bool can_grow GUARDED_BY(mutex) = true;
  bool complete GUARDED_BY(mutex) = false;
  std::shared_ptr<const Source> all GUARDED_BY(mutex);
  std::exception_ptr error GUARDED_BY(mutex);
  std::atomic<bool> stop = false;
  std::jthread thread;

  Impl(std::string root_in, std::function<void()> cancel_in)
      : root(std::move(root_in)), cancel(std::move(cancel_in)) {}

  void open(GrowingSource& source, const Open& make) {
    std::shared_ptr<const Source> made;
    std::exception_ptr problem;
    try {
      made = make(source, [this] { return !stop; });
    } catch (...) {
      problem = std::current_exception();
    }
    const MutexLock lock(mutex);
    all = std::move(made);
    error = problem;
    complete = true;
    // Whoever feeds its samples has it, too.
    first.reset();
    changed.notify_all();
  }

  const Source& whole() {
    MutexLock lock(mutex);
    while (!complete) changed.wait(lock);
    if (error) std::rethrow_exception(error);
    return *all;
  }

  // Returns a source that has the sample: the first samples, or the whole.
  std::shared_ptr<const Source> with(SampleId id) {
    MutexLock lock(mutex);
    if (first && id < first->size()) return first;
    while (!complete) changed.wait(lock);
    if (error) std::rethrow_exception(error);
    return all;
  }
};

GrowingSource::GrowingSource(std::string root, Open open, std::function<void()> cancel)
    : impl_(std::make_unique<Impl>(std::move(root), std::move(cancel))) {
  impl_->thread =
      start_thread("opening a source",
                   [this, make = std::move(open), impl = impl_.get()] { impl->open(*this, make); });
}

GrowingSource::~GrowingSource() {
  impl_->stop = true;
  if (impl_->cancel && !is_complete()) impl_->cancel();
  impl_->thread.join();
}

std::shared_ptr<const Source> GrowingSource::first_samples(
    int64_t more_than, const std::function<bool()>& go_on) const {
  for (;;) {
    {
      MutexLock lock(impl_->mutex);
      if (impl_->complete || !impl_->can_grow) return nullptr;
      if (impl_->first && impl_->first->size() > more_than) return impl_->first;
      impl_->wanted = more_than;
      impl_->changed.wait_until(lock, std::chrono::steady_clock::now() + kGrowAskAfter);
    }
    if (go_on && !go_on()) return nullptr;
  }
}

bool GrowingSource::is_complete(int ms) const {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
  MutexLock lock(impl_->mutex);
  while (!impl_->complete && std::chrono::steady_clock::now() < end) {
    impl_->changed.wait_until(lock, end);
  }
  return impl_->complete;
}

bool GrowingSource::wants(int64_t samples) const {
  const MutexLock lock(impl_->mutex);
  const int64_t known = impl_->first ? impl_->first->size() : 0;
  return impl_->can_grow && samples > impl_->wanted && known <= impl_->wanted;
}

void GrowingSource::grow(std::shared_ptr<const Source> first) {
  const MutexLock lock(impl_->mutex);
  impl_->first = std::move(first);
  impl_->changed.notify_all();
}

void GrowingSource::cannot_grow() {
  const MutexLock lock(impl_->mutex);
  impl_->can_grow = false;
  impl_->changed.notify_all();
}

const SourceInfo& GrowingSource::info() const { return impl_->whole().info(); }

int GrowingSource::label(SampleId id) const { return impl_->with(id)->label(id); }

std::string GrowingSource::name(SampleId id) const { return impl_->with(id)->name(id); }

const std::string& GrowingSource::root() const { return impl_->root; }

ReadStatus GrowingSource::read(SampleId id, std::vector<uint8_t>& buffer,
                               std::span<const uint8_t>& bytes) const {
  return impl_->with(id)->read(id, buffer, bytes);
}

bool GrowingSource::read_cached(SampleId id, std::vector<uint8_t>& buffer,
                                std::span<const uint8_t>& bytes) const {
  return impl_->with(id)->storage().read_cached(id, buffer, bytes);
}

FileStamp GrowingSource::stamp(SampleId id) const { return impl_->with(id)->storage().stamp(id); }

bool GrowingSource::read_pieces(SampleId id, const FileStamp& stamp,
                                std::span<const BytePiece> pieces, MayWait may_wait) const {
  return impl_->with(id)->storage().read_pieces(id, stamp, pieces, may_wait);
}

std::unique_ptr<LookAhead> GrowingSource::look_ahead(SampleSequence next) const {
  return impl_->whole().storage().look_ahead(std::move(next));
}

void GrowingSource::will_not_read(SampleId id) const {
  impl_->with(id)->storage().will_not_read(id);
}

int64_t GrowingSource::look_ahead_bytes() const {
  return impl_->whole().storage().look_ahead_bytes();
}

std::optional<StoreStats> GrowingSource::store_stats() const {
  return impl_->whole().storage().store_stats();
}

std::optional<StoredBytes> GrowingSource::stored_bytes() const {
  return impl_->whole().storage().stored_bytes();
}

void GrowingSource::read_targets(SampleId id, std::span<const uint8_t> bytes,
                                 SampleTargets& out) const {
  impl_->with(id)->read_targets(id, bytes, out);
}

Size GrowingSource::picture_size(SampleId id) const { return impl_->with(id)->picture_size(id); }

ReadStatus GrowingSource::read_annotations(SampleId id, std::span<const uint8_t> bytes,
                                           Annotations& out) const {
  return impl_->with(id)->read_annotations(id, bytes, out);
}

ReadStatus GrowingSource::read_picture(SampleId id, size_t number, MayWait may_wait,
                                       std::vector<uint8_t>& buffer,
                                       std::span<const uint8_t>& bytes) const {
  return impl_->with(id)->read_picture(id, number, may_wait, buffer, bytes);
}

uint64_t GrowingSource::labels_digest() const { return impl_->whole().labels_digest(); }

}  // namespace stoker
