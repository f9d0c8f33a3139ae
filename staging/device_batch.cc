#include <utility>

#include "staging/stager_impl.h"

namespace stoker {

DeviceBatch::DeviceBatch(DeviceBatch&& other) noexcept
    : slot_(std::exchange(other.slot_, nullptr)) {}

DeviceBatch& DeviceBatch::operator=(DeviceBatch&& other) noexcept {
  DeviceBatch moved(std::move(other));  // takes the old lease with it, also when other is *this
  std::swap(slot_, moved.slot_);
  return *this;
}

DeviceBatch::~DeviceBatch() {
  if (slot_ != nullptr) slot_->stager->give_back(*slot_);
}

const BatchHeader& DeviceBatch::header() const {
  return *reinterpret_cast<const BatchHeader*>(host_part(layout().header_offset()));
}

BatchShape DeviceBatch::shape() const {
  BatchShape shape = layout().shape();
  if (header().height > 0) {
    shape.height = header().height;
    shape.width = header().width;
  }
  return shape;
}

const uint8_t* DeviceBatch::images() const {
  return reinterpret_cast<const uint8_t*>(slot_->device_part + layout().images_offset());
}

const int32_t* DeviceBatch::labels() const {
  return reinterpret_cast<const int32_t*>(slot_->device_part + layout().labels_offset());
}

const float* DeviceBatch::weights() const {
  return reinterpret_cast<const float*>(slot_->device_part + layout().weights_offset());
}

const std::byte* DeviceBatch::target(size_t column) const {
  const size_t offset = layout().target_offset(column);
  return layout().is_on_host(column) ? host_part(offset) : slot_->device_part + offset;
}

const SampleId* DeviceBatch::ids() const {
  return reinterpret_cast<const SampleId*>(host_part(layout().ids_offset()));
}

const std::byte* DeviceBatch::notes() const { return host_part(layout().notes_offset()); }

std::shared_ptr<Memory> DeviceBatch::keep() {
  std::shared_ptr<Memory> memory = slot_->stager->keep(*slot_);
  *this = {};
  return memory;
}

void DeviceBatch::synchronize() const { slot_->copied->synchronize(); }

const BatchLayout& DeviceBatch::layout() const { return slot_->stager->layout; }

const std::byte* DeviceBatch::host_part(size_t offset) const {
  return slot_->host_part + (offset - layout().ids_offset());
}

}  // namespace stoker
