// What a Feed lends, and how it comes back.
#include <cstring>

#include "python/core/feed.h"
#include "python/core/lease.h"

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

std::string text_of(const std::set<Step>& steps) {
  std::string text;
  for (const Step step : steps) text += (text.empty() ? "" : ", ") + std::to_string(step);
  return text;
}

}  // namespace

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
  const size_t slot = slot_of(step);
  lent_[slot] = step;
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
    images.data = outputs_[slot_of(step)]->data();
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
    if (poison_) poison(each);
    each.batch = {};
    std::lock_guard lock(returned_mutex_);
    held_.erase(each.step);
  }
}

// Whoever reads the memory still, by an address of their own, sees it at once. REQUIRES:
// stream_mutex_ held.
void Feed::poison(const Returned& returned) noexcept {
  void* images = normaliser_ ? static_cast<void*>(outputs_[slot_of(returned.step)]->data())
                             : const_cast<uint8_t*>(returned.batch.images());
  try {
    compute_->copy(images, poison_->data(), poison_->size_bytes(), CopyKind::host_to_device);
  } catch (const std::exception&) {
    // A device that failed keeps failing: next() says so.
  }
}

Stream& Feed::borrowed(uintptr_t handle) {
  auto& stream = borrowed_[handle];
  if (!stream) stream = device_->borrow_stream(reinterpret_cast<void*>(handle));
  return *stream;
}

}  // namespace stoker::python
