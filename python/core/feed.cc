#include "python/core/feed.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "pipeline/row/loader_options.h"
#include "python/core/lease.h"
#include "python/core/python_lock.h"
#include "python/core/read_stop.h"
#include "staging/device_list.h"
#include "staging/error_text.h"

namespace stoker::python {
namespace {

void check_feed_options(const Feed::Options& options, const Device& device) {
  if (options.copy && !device.host_accessible()) {
    throw std::invalid_argument("copy=True is for the host; on " + device.name() +
                                " clone what you keep (it is a copy on the device)");
  }
}

// Deletes a feed. That waits for threads and for the readers on a GPU's streams; any of them may
// need Python's lock, and other Python threads continue meanwhile. Called by whoever drops the last
// Loader, batch or tensor, with the lock or without.
void end_feed(Feed* feed) {
  std::optional<Unlocked> unlocked;
  if (holds_python_lock()) unlocked.emplace();
  delete feed;
}

}  // namespace

std::shared_ptr<Feed> Feed::make(std::shared_ptr<const Source> source, const AugmentSpec& augment,
                                 LoaderOptions loader, const Options& options) {
  std::shared_ptr<Feed> feed(new Feed(std::move(source), augment, loader, options), end_feed);
  const MutexLock lock(feed->table_->mutex);
  feed->table_->feed = feed;
  return feed;
}

Feed::Feed(std::shared_ptr<const Source> source, const AugmentSpec& augment, LoaderOptions loader,
           const Options& options)
    : process_(getpid()),
      source_(stoppable(std::move(source), reads_end_)),
      options_(options),
      device_(make_device(options.device)),
      table_(std::make_shared<LeaseTable>(process_, device_)),
      augment_(std::make_shared<AugmentSpec>(augment)),
      seed_(loader.seed),
      decode_(loader.feed.decode),
      texts_(loader.varying.texts),
      next_step_(loader.first_step) {
  check_feed_options(options, *device_);
  if (device_->cuda_ordinal() >= 0) {
    where_ = {static_cast<int32_t>(DlDeviceType::cuda), device_->cuda_ordinal()};
  }
  const ImageFormat& format = options_.format;
  specs_ = row_specs(augment, loader);
  Size largest;
  for (const AugmentSpec& spec : specs_) {
    const Size size = spec.output;
    if (int64_t{size.width} * size.height > int64_t{largest.width} * largest.height) largest = size;
  }
  images_bytes_ = size_t{3} * static_cast<size_t>(largest.height) *
                  static_cast<size_t>(largest.width) * static_cast<size_t>(loader.batch_size) *
                  (format.type ? value_bytes(*format.type) : 1);
  loader.slots = on_host() ? 0 : loader.leases;
  compute_ = device_->make_stream();
  if (format.type && on_host()) {
    loader.format = RowFormat{*format.type, format.order, format.mean, format.stddev};
  } else if (format.type) {
    make_normalisers(loader.batch_size);
  }
  edits_ = device_edits(augment, {device_.get()}, loader);
  try {
    loader_ = std::make_unique<Loader>(*source_, augment, std::vector{device_.get()}, loader);
  } catch (const std::bad_alloc&) {
    throw OutOfMemory("ring_depth=" + std::to_string(loader.ring_depth) +
                          " batches of batch_size=" + std::to_string(loader.batch_size) +
                          " samples of " + std::to_string(largest.height) + " x " +
                          std::to_string(largest.width) + " pixels",
                      images_bytes_ * static_cast<size_t>(loader.ring_depth));
  }
  end_step_ = loader_->end_step();
  steps_per_epoch_ = loader_->steps_per_epoch();
  max_leases_ = loader_->max_leases(0);
  for (int i = 0; i < max_leases_; ++i) {
    ready_.push_back(device_->make_event());
    if (normalisers_.empty()) continue;
    outputs_.push_back(device_->allocate(output_offsets_.back(), MemoryKind::device));
  }
  if (!options_.poison) return;
  poison_ = device_->allocate(images_bytes_, MemoryKind::pinned);
  std::memset(poison_->data(), kPoison, poison_->size_bytes());
}

void Feed::make_normalisers(int rows) {
  const ImageFormat& format = options_.format;
  output_offsets_ = {0};
  for (int number = 0; number < augment_->views(); ++number) {
    size_t bytes = 0;
    for (const AugmentSpec& spec : specs_) {
      const Size size = spec.view(number).output;
      normalisers_.emplace_back(*device_, NormaliseOptions{.height = size.height,
                                                           .width = size.width,
                                                           .type = *format.type,
                                                           .order = format.order,
                                                           .mean = format.mean,
                                                           .stddev = format.stddev});
      bytes = std::max(bytes, normalisers_.back().row_bytes() * static_cast<size_t>(rows));
    }
    const size_t aligned =
        (bytes + BatchLayout::kAlignment - 1) / BatchLayout::kAlignment * BatchLayout::kAlignment;
    output_offsets_.push_back(output_offsets_.back() + aligned);
  }
}

Feed::~Feed() {
  if (!in_child()) {
    close();
    return;
  }
  // Everything with a thread or a GPU's context is leaked on purpose: the threads are the parent's.
  new std::shared_ptr<LeaseTable>(table_);
  (void)loader_.release();
  (void)compute_.release();
  if (on_host()) return;
  new auto(std::move(ready_));
  new auto(std::move(outputs_));
  (void)poison_.release();
}

bool Feed::in_child() const { return getpid() != process_; }

void Feed::check_process() const {
  if (!in_child()) return;
  throw std::runtime_error("this Loader belongs to process " + std::to_string(process_) +
                           "; a child made by fork() has none of its threads: make a Loader in "
                           "the child (process " +
                           std::to_string(getpid()) + "), or start the child by spawn");
}

bool Feed::wait_ready(Step end, int ms) {
  check_process();
  SharedLock running(running_mutex_);
  {
    MutexLock lock(stream_mutex_);
    if (next_step_ >= end || closed_) return true;
    make_room();
  }
  return loader_->wait_ready(0, ms);
}

std::optional<Batch> Feed::next(Step end, bool& again) {
  check_process();
  std::optional<Batch> batch;
  again = false;
  {
    SharedLock running(running_mutex_);
    MutexLock lock(stream_mutex_);
    if (next_step_ >= end || closed_) return {};
    make_room();
    again = !loader_->wait_ready(0, 0);
    if (again) return {};
    try {
      DeviceBatch leased = loader_->next(0, *compute_);
      if (leased) batch = lend(std::move(leased));
    } catch (const std::runtime_error& error) {
      throw FeedError(error.what());
    }
  }
  drain_soon();
  return batch;
}

void Feed::close() noexcept {
  closed_ = true;
  if (in_child()) return;
  {
    SharedLock running(running_mutex_);
    if (loader_) loader_->stop();  // so that no thread waits for it any more
    reads_end_ = true;             // nor for a sample
  }
  ExclusiveLock alone(running_mutex_);
  if (!loader_) return;
  MutexLock lock(stream_mutex_);  // nobody else uses it now; drain() requires the lock
  keep_all();
  drain();
  try {
    compute_->synchronize();  // held batches have arrived, and returned ones are not in use
  } catch (const std::exception&) {
    // A failed device runs nothing more.
  }
  loader_.reset();
  outputs_.clear();
  poison_.reset();
  compute_.reset();
}

int Feed::held() const {
  check_process();
  MutexLock lock(table_->mutex);
  return static_cast<int>(std::count_if(table_->held.begin(), table_->held.end(),
                                        [](const auto& each) { return each.second != nullptr; }));
}

Loader& Feed::running() const {
  if (!loader_) throw std::runtime_error("the Loader was closed");
  return *loader_;
}

LoaderState Feed::state() const {
  check_process();
  SharedLock lock(running_mutex_);
  return running().state();
}

void Feed::check_state(const LoaderState& state, uint64_t seed) const {
  check_process();
  SharedLock lock(running_mutex_);
  Loader::resume_step(state, running(), seed);
}

std::shared_ptr<RemoteRows> Feed::remote_rows() const {
  check_process();
  SharedLock lock(running_mutex_);
  return running().remote_rows();
}

LoaderStats Feed::stats() const {
  check_process();
  SharedLock lock(running_mutex_);
  return running().stats();
}

MemoryPlan Feed::memory_plan() const {
  check_process();
  SharedLock lock(running_mutex_);
  MemoryPlan plan = running().memory_plan();
  for (const auto& output : outputs_) plan.slot_bytes += static_cast<int64_t>(output->size_bytes());
  return plan;
}

}  // namespace stoker::python
