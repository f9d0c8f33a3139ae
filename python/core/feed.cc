#include "python/core/feed.h"

#include <unistd.h>

#include <cstring>

#include "python/core/lease.h"
#include "python/core/unlocked.h"
#include "staging/device_list.h"

namespace stoker::python {
namespace {

constexpr int kPoison = 0xDB;  // nobody's picture, and as a float -1.2e17

void check(const Feed::Options& options, const Device& device) {
  if (options.copy && !device.host_accessible()) {
    throw std::invalid_argument("copy=True is for the host; on " + device.name() +
                                " clone what you keep (it is a copy on the device)");
  }
}

// The end waits for threads, and for the readers on a GPU's streams: any of them may need Python's
// lock, and other threads of Python's go on meanwhile. Whoever drops the last Loader, batch or
// tensor comes here, with the lock or without.
void end(Feed* feed) {
  std::optional<Unlocked> unlocked;
  if (holds_python_lock()) unlocked.emplace();
  delete feed;
}

}  // namespace

std::shared_ptr<Feed> Feed::make(std::shared_ptr<const Source> source, const AugmentSpec& augment,
                                 LoaderOptions loader, const Options& options) {
  return std::shared_ptr<Feed>(new Feed(std::move(source), augment, loader, options), end);
}

Feed::Feed(std::shared_ptr<const Source> source, const AugmentSpec& augment, LoaderOptions loader,
           const Options& options)
    : process_(getpid()),
      source_(std::move(source)),
      options_(options),
      device_(make_device(options.device)),
      next_step_(loader.first_step) {
  check(options, *device_);
  if (device_->cuda_ordinal() >= 0) {
    where_ = {static_cast<int32_t>(DlDeviceType::cuda), device_->cuda_ordinal()};
  }
  loader.slots = device_->host_accessible() ? 0 : loader.leases;
  compute_ = device_->make_stream();
  const ImageFormat& format = options_.format;
  if (format.type) {
    normaliser_ =
        std::make_unique<Normaliser>(*device_, NormaliseOptions{.height = augment.output.height,
                                                                .width = augment.output.width,
                                                                .type = *format.type,
                                                                .order = format.order,
                                                                .mean = format.mean,
                                                                .stddev = format.stddev});
  }
  loader_ = std::make_unique<Loader>(*source_, augment, std::vector{device_.get()}, loader);
  lent_ = std::vector<std::atomic<Step>>(static_cast<size_t>(loader_->max_leases(0)));
  for (int i = 0; i < loader_->max_leases(0); ++i) {
    ready_.push_back(device_->make_event());
    if (!normaliser_) continue;
    outputs_.push_back(device_->allocate(
        static_cast<size_t>(loader.batch_size) * normaliser_->row_bytes(), MemoryKind::device));
  }
  if (!options_.poison) return;
  const size_t pixels = static_cast<size_t>(augment.output.height) * augment.output.width;
  const size_t row_bytes = normaliser_ ? normaliser_->row_bytes() : 3 * pixels;
  poison_ =
      device_->allocate(static_cast<size_t>(loader.batch_size) * row_bytes, MemoryKind::pinned);
  std::memset(poison_->data(), kPoison, poison_->size_bytes());
}

Feed::~Feed() {
  if (!in_child()) {
    if (poison_) wait_for_poison();
    return;
  }
  // Everything with a thread, or a GPU's context, behind it stays as it is: the threads are the
  // parent's.
  new std::vector<Returned>(std::move(returned_));
  (void)loader_.release();
  for (auto& event : ready_) (void)event.release();
  for (auto& [handle, stream] : borrowed_) (void)stream.release();
  (void)compute_.release();
  if (where_ == DlDevice{}) return;
  for (auto& output : outputs_) (void)output.release();
  (void)poison_.release();
  (void)device_.release();
}

// What it is written to goes with loader_ and outputs_.
void Feed::wait_for_poison() noexcept {
  try {
    compute_->synchronize();
  } catch (const std::exception&) {
    // A device that failed runs nothing more.
  }
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
  {
    std::lock_guard lock(stream_mutex_);
    drain();
    if (next_step_ >= end || closed_) return true;
    check_room();
  }
  return loader_->wait_ready(0, ms);
}

std::optional<Batch> Feed::next(Step end, bool& again) {
  check_process();
  std::optional<Batch> batch;
  again = false;
  // A copy's lease ends before another thread's next step may need its memory.
  std::unique_lock copying(copy_mutex_, std::defer_lock);
  if (options_.copy) copying.lock();
  {
    std::lock_guard lock(stream_mutex_);
    drain();
    if (next_step_ >= end || closed_) return {};
    check_room();
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
  if (batch && options_.copy) batch = copy_of(std::move(*batch));
  return batch;
}

void Feed::close() noexcept {
  closed_ = true;
  if (!in_child()) loader_->stop();
}

Step Feed::next_step() const { return next_step_; }
Step Feed::end_step() const { return loader_->end_step(); }
int64_t Feed::steps_per_epoch() const { return loader_->steps_per_epoch(); }
int Feed::max_leases() const { return loader_->max_leases(0); }

int Feed::held() const {
  check_process();
  std::lock_guard lock(returned_mutex_);
  return static_cast<int>(held_.size());
}

LoaderState Feed::state() const {
  check_process();
  return loader_->state();
}

void Feed::check_state(const LoaderState& state) const {
  check_process();
  Loader::resume_step(state, *loader_);
}

LoaderStats Feed::stats() const {
  check_process();
  return loader_->stats();
}

MemoryPlan Feed::memory_plan() const {
  check_process();
  MemoryPlan plan = loader_->memory_plan();
  for (const auto& output : outputs_) plan.slot_bytes += static_cast<int64_t>(output->size_bytes());
  return plan;
}

}  // namespace stoker::python
