// Scratch memory for vector loads: aligned, grows and never shrinks, does not keep its content when
// it grows. Internal to CropDecoder.
#pragma once

#include <hwy/aligned_allocator.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace stoker {

template <class T>
class AlignedBuffer {
 public:
  // At least `count` values; fresh memory is zero, so that nothing depends on what lay there.
  T* grow(size_t count) {
    if (count > size_) {
      data_ = hwy::AllocateAligned<T>(count);
      std::memset(data_.get(), 0, count * sizeof(T));
      size_ = count;
    }
    return data_.get();
  }
  void release() {
    data_.reset();
    size_ = 0;
  }
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  // What it will hold after grow(count).
  int64_t bytes_with(size_t count) const {
    return static_cast<int64_t>((count > size_ ? count : size_) * sizeof(T));
  }
  int64_t bytes() const { return static_cast<int64_t>(size_ * sizeof(T)); }

 private:
  hwy::AlignedFreeUniquePtr<T[]> data_;
  size_t size_ = 0;
};

// How many values a buffer must hold.
template <class T>
struct BufferNeed {
  AlignedBuffer<T>* buffer;
  size_t count;
};
template <class T>
BufferNeed(AlignedBuffer<T>*, size_t) -> BufferNeed<T>;  // which not every compiler finds by itself

// Grows buffers that together must not hold more than `limit` bytes; each keeps the size of the
// largest image that it met, which need not be the same one for all. False: these needs are more.
template <class... T>
bool grow_within(int64_t limit, BufferNeed<T>... needs) {
  if ((static_cast<int64_t>(needs.count * sizeof(T)) + ...) > limit) return false;
  if ((needs.buffer->bytes_with(needs.count) + ...) > limit) (needs.buffer->release(), ...);
  (needs.buffer->grow(needs.count), ...);
  return true;
}

}  // namespace stoker
