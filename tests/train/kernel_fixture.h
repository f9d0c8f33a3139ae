// For tests of single operations: the emulated kernels beside the plain loops. Values.
#pragma once

#include <cstring>
#include <memory>

#include "tests/support/cuda_emulator.h"
#include "tests/support/host_ops.h"
#include "tests/train/device_fixture.h"

namespace stoker {

// Both kinds of operations on one host stream.
class TwoOps {
 public:
  TwoOps() = default;
  TwoOps(const TwoOps&) = delete;
  TwoOps& operator=(const TwoOps&) = delete;
  ~TwoOps() { stream_->synchronize(); }  // what is queued uses the operations' memory
  Stream& stream() { return *stream_; }
  DeviceOps& kernels() { return *kernels_; }
  DeviceOps& loops() { return *loops_; }

 private:
  const std::unique_ptr<Stream> stream_ = host_device().make_stream();
  const std::unique_ptr<DeviceOps> kernels_ = emulated_cuda_ops_factory()(host_device(), *stream_);
  const std::unique_ptr<DeviceOps> loops_ = host_ops_factory()(host_device(), *stream_);
};

// Memory with a device's alignment.
class Bytes {
 public:
  explicit Bytes(int64_t bytes)
      : memory_(host_device().allocate(static_cast<size_t>(bytes), MemoryKind::pinned)) {
    std::memset(memory_->data(), 0xff, memory_->size_bytes());
  }
  template <typename Number = void>
  Number* at() const {
    return reinterpret_cast<Number*>(memory_->data());
  }
  bool operator==(const Bytes& other) const {
    return memory_->size_bytes() == other.memory_->size_bytes() &&
           std::memcmp(at(), other.at(), memory_->size_bytes()) == 0;
  }

 private:
  std::unique_ptr<Memory> memory_;
};

}  // namespace stoker
