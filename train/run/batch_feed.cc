#include "train/run/batch_feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "train/engine/byte_text.h"
#include "train/run/batch_shape.h"

namespace stoker {
namespace {

// A trainer's source has one target besides its labels at most (labels_of()), and then its rows
// are not mixed: two columns are those of mixing, mix_columns().
bool is_mixed(const BatchShape& shape) { return shape.target_bytes.size() == kMixColumns; }
bool has_targets(const BatchShape& shape) { return shape.target_bytes.size() == 1; }
static_assert(kMixColumns != 1);

}  // namespace

FedBatch fed(const DeviceBatch& batch) {
  FedBatch result;
  result.rows.images = batch.images();
  result.rows.labels = batch.labels();
  result.rows.weights = batch.weights();
  if (is_mixed(batch.shape())) {
    result.rows.mix_labels = reinterpret_cast<const int32_t*>(batch.target(0));
    result.rows.mix_weights = reinterpret_cast<const float*>(batch.target(1));
  }
  if (has_targets(batch.shape())) {
    result.rows.targets = reinterpret_cast<const float*>(batch.target(0));
  }
  result.ids = batch.ids();
  result.notes = row_notes(batch);
  result.header = batch.header();
  return result;
}

int64_t ResidentBatches::batch_bytes(const BatchShape& shape) {
  return static_cast<int64_t>(BatchLayout(shape).device_bytes());
}

ResidentBatches::ResidentBatches(Device& device, const BatchShape& shape, int64_t count)
    : shape_(shape), batches_(static_cast<size_t>(count)) {
  const int64_t bytes = device_bytes();
  const auto refuse = [&](const std::string& why) {
    throw std::runtime_error(
        fmt::format("feed: resident: {} batches of {} take {} on {}, {}: give the feed a budget "
                    "that is smaller "
                    "(--resident-mib), and the batches that fit are replayed",
                    count, mebibytes(batch_bytes(shape)), mebibytes(bytes), device.name(), why));
  };
  if (device.cuda_ordinal() < 0 && bytes > free_host_bytes()) {
    refuse(fmt::format("and {} are free", mebibytes(free_host_bytes())));
  }
  try {
    memory_ = device.allocate(static_cast<size_t>(bytes), MemoryKind::device);
  } catch (const std::runtime_error& error) {
    refuse(error.what());
  }
  ids_.resize(static_cast<size_t>(count) * static_cast<size_t>(shape.rows));
}

void ResidentBatches::stage(Loader& loader, int device, Stream& stream) {
  for (int64_t index = 0; index < count(); ++index) {
    const DeviceBatch batch = loader.next(device, stream);
    if (!batch) {
      throw std::runtime_error(
          fmt::format("feed: resident: it ended after {} of {} batches", index, count()));
    }
    copy(batch, index, stream);
  }
  stream.synchronize();
}

void ResidentBatches::copy(const DeviceBatch& batch, int64_t index, Stream& stream) {
  const BatchLayout layout(shape_);
  std::byte* to = memory_->data() + index * batch_bytes(shape_);
  const auto rows = static_cast<size_t>(shape_.rows);
  const auto part = [&](const auto* from, size_t offset, size_t bytes) {
    stream.copy(to + offset, from, bytes, CopyKind::device_to_device);
    return reinterpret_cast<decltype(from)>(to + offset);
  };
  const BatchRows leased = fed(batch).rows;
  FedBatch& kept = batches_[static_cast<size_t>(index)];
  kept.rows.images = part(leased.images, layout.images_offset(), rows * layout.image_bytes());
  kept.rows.labels = part(leased.labels, layout.labels_offset(), rows * sizeof(int32_t));
  kept.rows.weights = part(leased.weights, layout.weights_offset(), rows * sizeof(float));
  if (leased.mix_labels != nullptr) {
    kept.rows.mix_labels = part(leased.mix_labels, layout.target_offset(0), rows * sizeof(int32_t));
    kept.rows.mix_weights = part(leased.mix_weights, layout.target_offset(1), rows * sizeof(float));
  }
  if (leased.targets != nullptr) {
    kept.rows.targets = part(leased.targets, layout.target_offset(0),
                             rows * static_cast<size_t>(shape_.target_bytes[0]));
  }
  kept.header = batch.header();
  SampleId* ids = ids_.data() + index * shape_.rows;
  std::copy_n(batch.ids(), rows, ids);
  kept.ids = ids;
}

}  // namespace stoker
