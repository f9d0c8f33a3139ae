// The leases of a Feed, and their return.
#include <cstring>

#include "pipeline/row/packed_values.h"
#include "python/core/array.h"
#include "python/core/feed.h"
#include "python/core/lease.h"
#include "staging/error_text.h"

namespace stoker::python {
namespace {

DlType pixel_type(const ImageFormat& format) {
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

std::string steps_text(const std::vector<Step>& steps) {
  std::string text;
  for (const Step step : steps) text += (text.empty() ? "" : ", ") + std::to_string(step);
  return text;
}

// Masks and label images are as large as the images, and are lent as these.
bool is_lent(const std::string& column, const Source& source) {
  return source.annotations().any() && (column == "masks" || column == "label_image");
}

Array column_of(const void* data, DlType type, DlDevice device, int64_t rows) {
  Array made;
  made.data = const_cast<void*>(data);  // a lease's memory belongs to its holder
  made.type = type;
  made.device = device;
  made.shape = {rows};
  made.strides = {1};
  return made;
}

// Returns a compact copy of a column on the host.
Array copy_of(Array column) {
  auto memory = std::make_shared<HostBytes>(static_cast<size_t>(column.bytes()));
  std::memcpy(memory->data(), column.data, static_cast<size_t>(column.bytes()));
  column.data = memory->data();
  column.holder = std::move(memory);
  return column;
}

}  // namespace

// Makes sure that nothing uses the memory that the next batch needs: on a host, a held batch keeps
// that memory.
void Feed::make_room() {
  const Step needed = next_step_ - max_leases_;
  DeviceBatch kept;
  for (;;) {
    drain();
    MutexLock lock(table_->mutex);
    const auto found = table_->held.find(needed);
    if (found == table_->held.end()) return;
    Lease* const lease = found->second;
    if (lease == nullptr) continue;  // it was given back a moment ago
    if (!lease->loan(*table_).batch) return;
    if (on_host()) {
      kept = std::move(lease->loan(*table_).batch);
      break;
    }
    std::vector<Step> held;
    for (const auto& [step, each] : table_->held) held.push_back(step);
    throw std::runtime_error(
        "the batch of step " + std::to_string(next_step_) + " needs the memory of step " +
        std::to_string(needed) + ", which is still held (" + std::to_string(held.size()) +
        " batches are: of steps " + steps_text(held) + "; leases=" + std::to_string(max_leases_) +
        " lends the last " + std::to_string(max_leases_) +
        "). Drop the batch and what was made from it, clone what you keep, or raise leases=");
  }
  // Allocate without the lock, so that no thread that drops a tensor waits. The lease may end
  // meanwhile.
  std::shared_ptr<Memory> memory;
  std::exception_ptr error;
  try {
    memory = kept.keep();
  } catch (const std::bad_alloc&) {
    error = std::make_exception_ptr(OutOfMemory("the batch of step " + std::to_string(next_step_) +
                                                    ", while that of step " +
                                                    std::to_string(needed) + " is held",
                                                images_bytes_));
  }
  {
    MutexLock lock(table_->mutex);
    const auto found = table_->held.find(needed);
    if (found != table_->held.end() && error) {
      found->second->loan(*table_).batch = std::move(kept);
    } else if (found != table_->held.end()) {
      found->second->loan(*table_).memory.push_back(std::move(memory));
    }
  }
  if (error) std::rethrow_exception(error);
}

// Gives all leases their memory permanently. REQUIRES: the Loader is stopped.
void Feed::keep_all() noexcept {
  MutexLock lock(table_->mutex);
  for (const auto& [step, lease] : table_->held) {
    if (lease == nullptr || !lease->loan(*table_).batch) continue;
    Loan& loan = lease->loan(*table_);
    if (!normalisers_.empty()) loan.memory.push_back(outputs_[slot_of(step)]);
    loan.memory.push_back(loan.batch.keep());
  }
}

// Without other memory in its place, a batch is lent like others, until the feed needs the memory.
void Feed::give(DeviceBatch& leased, Loan& loan) {
  try {
    loan.memory.push_back(leased.keep());
  } catch (const std::bad_alloc&) {
    loan.memory.clear();
  }
}

Batch Feed::lend(DeviceBatch leased) {
  const Step step = leased.header().step;
  const int64_t rows = leased.shape().rows;
  next_step_ = step + 1;
  const AugmentSpec& spec = specs_[static_cast<size_t>(leased.header().shape)];
  // Those of the views are the last.
  const std::vector<TargetColumn>& columns = running().targets(leased.header().shape);
  Batch batch{.header = leased.header(),
              .images = as_images(normalised(0, leased.images(), leased), spec.output, rows),
              .labels = column_of(leased.labels(), kInt32, where_, rows),
              .weights = column_of(leased.weights(), kFloat32, where_, rows),
              .ids = copy_of(column_of(leased.ids(), kInt64, {}, rows))};
  const auto views = static_cast<size_t>(augment_->views() - 1), targets = columns.size() - views;
  for (size_t i = 0; i < targets; ++i) {
    const TargetColumn& column = columns[i];
    if (column.varies) continue;
    batch.targets.push_back({column.name, target_array(column, leased.target(i), where_, {rows})});
  }
  batch.varying = varying_of(leased, columns);
  batch.draws = draws_of(augment_, source_, seed_, decode_, leased);
  std::shared_ptr<Event> ready;
  if (!on_host()) {
    ready = ready_[slot_of(step)];
    compute_->record(*ready);
  } else {
    batch.labels = copy_of(std::move(batch.labels));
    batch.weights = copy_of(std::move(batch.weights));
    for (NamedArray& each : batch.targets) {
      if (!is_lent(each.name, *source_)) each.array = copy_of(std::move(each.array));
    }
  }
  for (size_t i = 0; i < views; ++i) {
    const AugmentView view = spec.view(static_cast<int>(i) + 1);
    const void* const pixels = leased.target(targets + i);
    Array images = as_images(normalised(i + 1, pixels, leased), view.output, rows);
    if (view.picture.empty()) {
      batch.views.push_back(std::move(images));
    } else {
      batch.targets.push_back({view.picture, std::move(images)});
    }
  }
  Loan loan;
  loan.step = step;
  if (options_.copy) give(leased, loan);
  loan.batch = std::move(leased);
  const auto lease = std::make_shared<Lease>(table_, std::move(loan), std::move(ready),
                                             batch.images.data, poison_ ? images_bytes_ : 0);
  for (Array* each : {&batch.images, &batch.labels, &batch.weights}) {
    if (!each->holder) each->holder = lease;
  }
  for (Array& each : batch.views) each.holder = lease;
  for (NamedArray& each : batch.targets) {
    if (!each.array.holder) each.array.holder = lease;
  }
  return batch;
}

// Their copies are small: they have no places that are not used.
std::vector<VaryingTarget> Feed::varying_of(const DeviceBatch& batch,
                                            const std::vector<TargetColumn>& columns) const {
  std::vector<VaryingTarget> varying;
  for (size_t i = 0; i < source_->targets().size(); ++i) {
    if (!columns[i].varies) continue;
    const PackedValues packed = packed_values(batch, columns, i);
    TargetColumn values = columns[i];
    values.shape = {packed.offsets.back()};
    varying.push_back({columns[i],
                       copy_of(target_array(values, packed.values, {}, {})),
                       {packed.offsets.begin(), packed.offsets.end()},
                       values.type == TargetType::text && texts_ == TextChoice::all});
  }
  return varying;
}

// Returns rows of images in the format of the feed.
Array Feed::as_images(const void* data, Size size, int64_t rows) const {
  const int64_t height = size.height, width = size.width, channels = 3;
  const ImageFormat& format = options_.format;
  Array images;
  images.type = pixel_type(format);
  images.device = where_;
  images.data = const_cast<void*>(data);
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

// Queues the normalisation of a view, if there is one, and returns where the view is then.
const void* Feed::normalised(size_t view, const void* pixels, const DeviceBatch& batch) {
  if (normalisers_.empty()) return pixels;
  std::byte* const output = outputs_[slot_of(batch.header().step)]->data() + output_offsets_[view];
  const size_t number = view * specs_.size() + static_cast<size_t>(batch.header().shape);
  normalisers_[number].run(*compute_, static_cast<const uint8_t*>(pixels), output,
                           batch.shape().rows);
  return output;
}

// Whichever thread uses the stream checks again when it is done, so nothing is left over.
void Feed::drain_soon() noexcept {
  for (;;) {
    {
      MutexLock lock(table_->mutex);
      if (table_->returned.empty()) return;
    }
    if (!drain_if_idle()) return;
  }
}

// Returns false if close() drains, or the thread that uses the stream does.
bool Feed::drain_if_idle() noexcept {
  if (!running_mutex_.try_lock_shared()) return false;
  bool drained = false;
  if (loader_ && stream_mutex_.try_lock()) {
    drain();
    drained = true;
    stream_mutex_.unlock();
  }
  running_mutex_.unlock_shared();
  return drained;
}

void Feed::drain() noexcept {
  std::vector<Loan> returned;
  {
    MutexLock lock(table_->mutex);
    returned.swap(table_->returned);
  }
  for (Loan& each : returned) {
    try {
      for (const auto& reader : each.readers) compute_->wait(*reader);
    } catch (const std::exception&) {
      // A failed device keeps failing: next() reports it.
    }
    if (poison_) poison(each);
    each.batch = {};
    MutexLock lock(table_->mutex);
    table_->held.erase(each.step);
  }
}

// Code that still reads the memory, through its own address, sees it immediately.
void Feed::poison(const Loan& returned) noexcept {
  void* images = !normalisers_.empty()
                     ? static_cast<void*>(outputs_[slot_of(returned.step)]->data())
                     : const_cast<uint8_t*>(returned.batch.images());
  try {
    compute_->copy(images, poison_->data(), poison_->size_bytes(), CopyKind::host_to_device);
  } catch (const std::exception&) {
    // A failed device keeps failing: next() reports it.
  }
}

}  // namespace stoker::python
