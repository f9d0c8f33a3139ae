#include "python/core/feed.h"

#include <unistd.h>

#include <cstring>

#include "python/core/lease.h"
#include "staging/device_list.h"

namespace stoker::python {
namespace {

DlType type_of(const ImageFormat& format) {
  if (!format.type) return kUint8;
  switch (*format.type) {
    case PixelType::bf16:
      return kBfloat16;
    case PixelType::fp16:
      return kFloat16;
    case PixelType::fp32:
      break;
  }
  return kFloat32;
}

void check(const Feed::Options& options, const Device& device) {
  if (options.copy && !device.host_accessible()) {
    throw std::invalid_argument("copy=True is for the host; on " + device.name() +
                                " clone what you keep (it is a copy on the device)");
  }
}

std::string text_of(const std::set<Step>& steps) {
  std::string text;
  for (const Step step : steps) text += (text.empty() ? "" : ", ") + std::to_string(step);
  return text;
}

}  // namespace

std::shared_ptr<Feed> Feed::make(std::shared_ptr<const Source> source, const AugmentSpec& augment,
                                 LoaderOptions loader, const Options& options) {
  return std::shared_ptr<Feed>(new Feed(std::move(source), augment, loader, options));
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
  for (int i = 0; i < loader_->max_leases(0); ++i) {
    ready_.push_back(device_->make_event());
    if (!normaliser_) continue;
    outputs_.push_back(device_->allocate(
        static_cast<size_t>(loader.batch_size) * normaliser_->row_bytes(), MemoryKind::device));
  }
}

Feed::~Feed() {
  if (!in_child()) return;
  // Everything with a thread, or a GPU's context, behind it stays as it is: the threads are the
  // parent's.
  new std::vector<Returned>(std::move(returned_));
  (void)loader_.release();
  for (auto& event : ready_) (void)event.release();
  for (auto& [handle, stream] : borrowed_) (void)stream.release();
  (void)compute_.release();
  if (where_ == DlDevice{}) return;
  for (auto& output : outputs_) (void)output.release();
  (void)device_.release();
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
    DeviceBatch leased;
    try {
      leased = loader_->next(0, *compute_);
    } catch (const std::runtime_error& error) {
      throw FeedError(error.what());
    }
    if (leased) batch = lend(std::move(leased));
  }
  drain_soon();
  if (batch && options_.copy) batch = copy_of(std::move(*batch));
  return batch;
}

// REQUIRES: stream_mutex_ held, or nobody else can have the stream.
void Feed::check_room() const {
  std::lock_guard lock(returned_mutex_);
  const int most = loader_->max_leases(0);
  if (held_.empty() || *held_.begin() > next_step_ - most) return;
  throw std::runtime_error(
      "the batch of step " + std::to_string(next_step_) + " needs the memory of step " +
      std::to_string(*held_.begin()) + ", which is still held (" + std::to_string(held_.size()) +
      " batches are: of steps " + text_of(held_) + "; leases=" + std::to_string(most) +
      " lends the last " + std::to_string(most) +
      "). Drop the batch and what was made from it, copy what you keep, or raise leases=");
}

Batch Feed::lend(DeviceBatch leased) {
  const Step step = leased.header().step;
  const auto slot = static_cast<size_t>(step) % ready_.size();
  const int64_t rows = leased.shape().rows;
  const auto array = [&](const void* data, DlType type, DlDevice device) {
    Array made;
    made.data = const_cast<void*>(data);  // a lease's memory is its holder's
    made.type = type;
    made.device = device;
    made.shape = {rows};
    made.strides = {1};
    return made;
  };
  Batch batch{.header = leased.header(),
              .images = images_of(leased, step),
              .labels = array(leased.labels(), kInt32, where_),
              .weights = array(leased.weights(), kFloat32, where_),
              .ids = array(leased.ids(), kInt64, {})};
  compute_->record(*ready_[slot]);
  {
    std::lock_guard lock(returned_mutex_);
    held_.insert(step);
  }
  next_step_ = step + 1;
  const auto lease =
      std::make_shared<Lease>(shared_from_this(), std::move(leased), step, *ready_[slot]);
  for (Array* each : {&batch.images, &batch.labels, &batch.weights, &batch.ids}) {
    each->holder = lease;
  }
  return batch;
}

// Queues what there is to do for them. REQUIRES: stream_mutex_ held.
Array Feed::images_of(const DeviceBatch& batch, Step step) {
  const BatchShape& shape = batch.shape();
  const int64_t rows = shape.rows, height = shape.height, width = shape.width, channels = 3;
  const ImageFormat& format = options_.format;
  Array images;
  images.type = type_of(format);
  images.device = where_;
  images.data = const_cast<uint8_t*>(batch.images());
  if (normaliser_) {
    images.data = outputs_[static_cast<size_t>(step) % outputs_.size()]->data();
    normaliser_->run(*compute_, batch.images(), images.data, shape.rows);
  }
  const int64_t row = height * width * channels;
  if (!format.channels_second) {
    images.shape = {rows, height, width, channels};
    images.strides = {row, width * channels, channels, 1};
  } else if (format.order == PixelOrder::nchw) {
    images.shape = {rows, channels, height, width};
    images.strides = {row, height * width, width, 1};
  } else {
    images.shape = {rows, channels, height, width};
    images.strides = {row, 1, width * channels, channels};
  }
  return images;
}

Batch Feed::copy_of(Batch batch) const {
  batch.images.holder->synchronize();
  for (Array* each : {&batch.images, &batch.labels, &batch.weights, &batch.ids}) {
    *each = each->host_copy();
  }
  return batch;
}

void Feed::give_back(Returned returned) noexcept {
  if (in_child()) {
    new Returned(std::move(returned));
    return;
  }
  {
    std::lock_guard lock(returned_mutex_);
    returned_.push_back(std::move(returned));
  }
  drain_soon();
}

// Whoever has the stream looks again when done, so nothing stays behind.
void Feed::drain_soon() noexcept {
  for (;;) {
    {
      std::lock_guard lock(returned_mutex_);
      if (returned_.empty()) return;
    }
    std::unique_lock lock(stream_mutex_, std::try_to_lock);
    if (!lock) return;
    drain();
  }
}

// REQUIRES: stream_mutex_ held.
void Feed::drain() noexcept {
  std::vector<Returned> returned;
  {
    std::lock_guard lock(returned_mutex_);
    returned.swap(returned_);
  }
  for (Returned& each : returned) {
    try {
      for (const auto& reader : each.readers) compute_->wait(*reader);
    } catch (const std::exception&) {
      // A device that failed keeps failing: next() says so.
    }
    each.batch = {};
    std::lock_guard lock(returned_mutex_);
    held_.erase(each.step);
  }
}

Stream& Feed::borrowed(uintptr_t handle) {
  auto& stream = borrowed_[handle];
  if (!stream) stream = device_->borrow_stream(reinterpret_cast<void*>(handle));
  return *stream;
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
