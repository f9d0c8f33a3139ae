// A lease of a batch, for its consumer. Stager::next() makes it, which Loader::next() calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "staging/batch_layout.h"
#include "staging/device.h"

namespace stoker {

// A lease of a slot (or of the slab itself), bound to the compute stream of the call to next():
// work queued on that stream sees the batch, and destroying the lease queues on it that the memory
// may be filled again. Move-only; empty after a move and at the end of the feed. Destroy it before
// the Stager (Loader).
class DeviceBatch {
 public:
  DeviceBatch() = default;
  DeviceBatch(DeviceBatch&&) noexcept;
  DeviceBatch& operator=(DeviceBatch&&) noexcept;
  ~DeviceBatch();

  explicit operator bool() const { return slot_ != nullptr; }  // false: the feed has ended
  const BatchHeader& header() const;                           // host
  BatchShape shape() const;                                    // with this batch's own size
  // On the device, (rows, height, width, 3) u8, or the bytes of the type in LoaderOptions::format.
  const uint8_t* images() const;
  const int32_t* labels() const;  // device, (rows)
  const float* weights() const;   // device, (rows); 0: does not count
  // (rows, shape().target_bytes[column]) of a column of Loader::targets(); on the device, but on
  // the host if it is one of shape().host_targets.
  const std::byte* target(size_t column) const;
  const SampleId* ids() const;     // host, (rows)
  const std::byte* notes() const;  // host, (rows, note_bytes_per_row)
  // Ends the lease and gives the device part of the batch to the caller, at the same addresses,
  // also beyond the Stager's end; images are first in it. The feed continues with other memory. On
  // a device with slots only after the feed was stopped. Throws std::bad_alloc, which changes
  // nothing.
  std::shared_ptr<Memory> keep();
  // Blocks the calling thread until the pixels have arrived: for consumers that work outside the
  // stream.
  void synchronize() const;

 private:
  friend class Stager;
  struct StagingSlot;
  explicit DeviceBatch(StagingSlot* slot) : slot_(slot) {}
  const BatchLayout& layout() const;
  const std::byte* host_part(size_t offset) const;
  StagingSlot* slot_ = nullptr;
};

}  // namespace stoker
