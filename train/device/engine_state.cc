// A device engine's states, in and out.
#include <algorithm>
#include <stdexcept>

#include "train/device/engine.h"
#include "train/engine/engine_arguments.h"

namespace stoker {

constexpr int64_t kFloat = sizeof(float);

// Until the first blend the average is what the net is: most runs never ask for one.
void DeviceEngine::ensure_average() {
  if (average_ != nullptr) return;
  average_ =
      device_.allocate(static_cast<size_t>(memory_->sizes().average_bytes), MemoryKind::device);
  ops_->copy(state(StateKind::average), state(StateKind::parameters),
             layout_.parameter_floats() * kFloat);
  ops_->copy(state(StateKind::average_statistics), state(StateKind::statistics),
             layout_.statistics_floats() * kFloat);
}

float* DeviceEngine::state(StateKind kind) const {
  auto* average = average_ != nullptr ? reinterpret_cast<float*>(average_->data()) : nullptr;
  switch (kind) {
    case StateKind::parameters:
      break;
    case StateKind::momenta:
      require_training(options_, "momenta");
      return memory_->at<float>(DevicePiece::momenta);
    case StateKind::average:
      if (average != nullptr) return average;
      break;
    case StateKind::average_statistics:
      if (average != nullptr) return average + layout_.parameter_floats();
      [[fallthrough]];
    case StateKind::statistics:
      return memory_->at<float>(DevicePiece::statistics);
  }
  return memory_->at<float>(DevicePiece::parameters);
}

bool DeviceEngine::is_statistics(StateKind kind) const {
  return kind == StateKind::statistics || kind == StateKind::average_statistics;
}

void DeviceEngine::to_host(const void* device, void* host, int64_t bytes) const {
  const auto* from = static_cast<const std::byte*>(device);
  auto* to = static_cast<std::byte*>(host);
  for (size_t left = static_cast<size_t>(bytes); left > 0;) {
    const size_t piece = std::min(left, transfer_->size_bytes());
    stream_->copy(transfer_->data(), from, piece, CopyKind::device_to_host);
    stream_->synchronize();
    to = std::copy_n(transfer_->data(), piece, to);
    from += piece;
    left -= piece;
  }
}

void DeviceEngine::to_device(const void* host, void* device, int64_t bytes) const {
  const auto* from = static_cast<const std::byte*>(host);
  auto* to = static_cast<std::byte*>(device);
  for (size_t left = static_cast<size_t>(bytes); left > 0;) {
    const size_t piece = std::min(left, transfer_->size_bytes());
    std::copy_n(from, piece, transfer_->data());
    stream_->copy(to, transfer_->data(), piece, CopyKind::host_to_device);
    stream_->synchronize();
    from += piece;
    to += piece;
    left -= piece;
  }
}

void DeviceEngine::read(StateKind kind, std::span<float> values) const {
  const int64_t held = total_count(is_statistics(kind) ? statistics_table_ : parameter_table_);
  if (static_cast<int64_t>(values.size()) != held) {
    throw std::invalid_argument("read: room for " + std::to_string(values.size()) +
                                " numbers, not " + std::to_string(held));
  }
  if (is_statistics(kind)) return to_host(state(kind), values.data(), held * kFloat);
  std::vector<float> flat(layout_.parameter_floats());
  to_host(state(kind), flat.data(), layout_.parameter_floats() * kFloat);
  layout_.from_device(flat, values);
}

void DeviceEngine::write(StateKind kind, std::span<const float> values) {
  const int64_t held = total_count(is_statistics(kind) ? statistics_table_ : parameter_table_);
  if (static_cast<int64_t>(values.size()) != held) {
    throw std::invalid_argument("write: " + std::to_string(values.size()) + " numbers, not " +
                                std::to_string(held));
  }
  if (kind == StateKind::average || kind == StateKind::average_statistics) ensure_average();
  if (is_statistics(kind)) return to_device(values.data(), state(kind), held * kFloat);
  std::vector<float> flat(layout_.parameter_floats());
  layout_.to_device(values, flat);
  to_device(flat.data(), state(kind), layout_.parameter_floats() * kFloat);
  loaded_ = Loaded::nothing;
}

}  // namespace stoker
