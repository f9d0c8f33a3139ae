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
  const Stager::Impl& stager = *slot_->stager;
  return *reinterpret_cast<const BatchHeader*>(
      stager.host_part(*slot_, stager.layout.header_offset()));
}

const BatchShape& DeviceBatch::shape() const { return slot_->stager->layout.shape(); }

const uint8_t* DeviceBatch::images() const {
  return reinterpret_cast<const uint8_t*>(slot_->memory->data() +
                                          slot_->stager->layout.images_offset());
}

const int32_t* DeviceBatch::labels() const {
  return reinterpret_cast<const int32_t*>(slot_->memory->data() +
                                          slot_->stager->layout.labels_offset());
}

const float* DeviceBatch::weights() const {
  return reinterpret_cast<const float*>(slot_->memory->data() +
                                        slot_->stager->layout.weights_offset());
}

const SampleId* DeviceBatch::ids() const {
  const Stager::Impl& stager = *slot_->stager;
  return reinterpret_cast<const SampleId*>(stager.host_part(*slot_, stager.layout.ids_offset()));
}

const std::byte* DeviceBatch::notes() const {
  const Stager::Impl& stager = *slot_->stager;
  return stager.host_part(*slot_, stager.layout.notes_offset());
}

void DeviceBatch::synchronize() const { slot_->copied->synchronize(); }

}  // namespace stoker
