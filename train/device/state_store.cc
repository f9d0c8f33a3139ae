#include "train/device/state_store.h"

#include <algorithm>

#include "train/device/weight_order.h"
#include "train/engine/engine_arguments.h"

namespace stoker {
namespace {

// Large enough that a state needs few copies, small enough to stay pinned for the engine's
// lifetime.
constexpr int64_t kTransferBytes = int64_t{4} << 20;

}  // namespace

DeviceStateStore::DeviceStateStore(const NetSpec& net, const EngineOptions& options,
                                   const GradientLayout& layout, const DeviceEngineMemory& memory,
                                   Device& device, Stream& stream, DeviceOps& ops)
    : options_(options),
      parameter_table_(parameter_table(net)),
      statistics_table_(statistics_table(net)),
      layout_(layout),
      memory_(memory),
      device_(device),
      stream_(stream),
      ops_(ops) {
  const int64_t largest =
      std::max(layout.parameter_numbers(), layout.statistics_numbers()) * kFloat;
  transfer_ =
      device.allocate(static_cast<size_t>(std::min(kTransferBytes, largest)), MemoryKind::pinned);
  std::vector<float> statistics(layout.statistics_numbers(), 0.0f);
  for (size_t i = 1; i < statistics_table_.size(); i += 2) {  // variances
    std::fill_n(statistics.begin() + statistics_table_[i].offset, statistics_table_[i].count, 1.0f);
  }
  write(StateKind::statistics, statistics);
}

float* DeviceStateStore::at(StateKind kind) const {
  auto* average = average_ != nullptr ? reinterpret_cast<float*>(average_->data()) : nullptr;
  switch (kind) {
    case StateKind::parameters:
      break;
    case StateKind::momenta:
      require_training(options_, "momenta");
      return memory_.at<float>(DevicePiece::momenta);
    case StateKind::second_moments:
      require_second_moments(options_);
      return memory_.at<float>(DevicePiece::second_moments);
    case StateKind::average:
      if (average != nullptr) return average;
      break;
    case StateKind::average_statistics:
      if (average != nullptr) return average + layout_.parameter_numbers();
      [[fallthrough]];
    case StateKind::statistics:
      return memory_.at<float>(DevicePiece::statistics);
  }
  return memory_.at<float>(DevicePiece::parameters);
}

const std::byte* DeviceStateStore::weights(bool averaged) const {
  if (options_.precision == Precision::bf16) return memory_.at(DevicePiece::weights);
  const float* masters = at(averaged ? StateKind::average : StateKind::parameters);
  return reinterpret_cast<const std::byte*>(masters);
}

void DeviceStateStore::load_weights(bool averaged) {
  const Loaded wanted = averaged ? Loaded::average : Loaded::parameters;
  if (loaded_ == wanted || options_.precision == Precision::fp32) return;
  ops_.cast_to_bf16(layout_.parameter_numbers(),
                    at(averaged ? StateKind::average : StateKind::parameters),
                    memory_.at(DevicePiece::weights));
  loaded_ = wanted;
}

void DeviceStateStore::update_queued() {
  if (loaded_ != Loaded::parameters) loaded_ = Loaded::nothing;
}

// Allocates the average on first use, because most runs need none.
void DeviceStateStore::make_average() {
  if (average_ != nullptr) return;
  average_ =
      device_.allocate(static_cast<size_t>(memory_.sizes().average_bytes), MemoryKind::device);
  ops_.copy(at(StateKind::average), at(StateKind::parameters),
            layout_.parameter_numbers() * kFloat);
  ops_.copy(at(StateKind::average_statistics), at(StateKind::statistics),
            layout_.statistics_numbers() * kFloat);
}

void DeviceStateStore::blend_average(float decay, bool pull) {
  make_average();
  ops_.blend(layout_.parameter_numbers(), decay, pull, at(StateKind::average),
             at(StateKind::parameters));
  ops_.blend(layout_.statistics_numbers(), decay, pull, at(StateKind::average_statistics),
             at(StateKind::statistics));
  if (pull || loaded_ == Loaded::average) loaded_ = Loaded::nothing;
}

void DeviceStateStore::to_host(const void* device, void* host, int64_t bytes) const {
  const auto* from = static_cast<const std::byte*>(device);
  auto* to = static_cast<std::byte*>(host);
  for (size_t left = static_cast<size_t>(bytes); left > 0;) {
    const size_t piece = std::min(left, transfer_->size_bytes());
    stream_.copy(transfer_->data(), from, piece, CopyKind::device_to_host);
    stream_.synchronize();
    to = std::copy_n(transfer_->data(), piece, to);
    from += piece;
    left -= piece;
  }
}

void DeviceStateStore::to_device(const void* host, void* device, int64_t bytes) const {
  const auto* from = static_cast<const std::byte*>(host);
  auto* to = static_cast<std::byte*>(device);
  for (size_t left = static_cast<size_t>(bytes); left > 0;) {
    const size_t piece = std::min(left, transfer_->size_bytes());
    std::copy_n(from, piece, transfer_->data());
    stream_.copy(to, transfer_->data(), piece, CopyKind::host_to_device);
    stream_.synchronize();
    from += piece;
    to += piece;
    left -= piece;
  }
}

int64_t DeviceStateStore::held(StateKind kind) const {
  return total_count(is_statistics(kind) ? statistics_table_ : parameter_table_);
}

std::span<const float> DeviceStateStore::values(StateKind kind) const {
  const int64_t count =
      is_statistics(kind) ? layout_.statistics_numbers() : layout_.parameter_numbers();
  return {at(kind), static_cast<size_t>(count)};
}

void DeviceStateStore::copy(StateKind kind, std::span<const float> from) {
  if (is_average(kind)) make_average();
  require_state("copy_state", from.size(), static_cast<int64_t>(values(kind).size()));
  stream_.copy(at(kind), from.data(), from.size_bytes(), CopyKind::device_to_device);
  if (!is_statistics(kind)) loaded_ = Loaded::nothing;
}

void DeviceStateStore::read(StateKind kind, std::span<float> values) const {
  require_state("read", values.size(), held(kind));
  if (is_statistics(kind)) return to_host(at(kind), values.data(), held(kind) * kFloat);
  std::vector<float> flat(layout_.parameter_numbers());
  to_host(at(kind), flat.data(), layout_.parameter_numbers() * kFloat);
  from_device_order(layout_, parameter_table_, flat, values);
}

void DeviceStateStore::write(StateKind kind, std::span<const float> values) {
  require_state("write", values.size(), held(kind));
  if (is_average(kind)) make_average();
  if (is_statistics(kind)) return to_device(values.data(), at(kind), held(kind) * kFloat);
  std::vector<float> flat(layout_.parameter_numbers());
  to_device_order(layout_, parameter_table_, values, flat);
  to_device(flat.data(), at(kind), layout_.parameter_numbers() * kFloat);
  loaded_ = Loaded::nothing;
}

}  // namespace stoker
