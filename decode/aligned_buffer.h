// Scratch memory for vector loads: aligned, grows and never shrinks, and loses its content when it
// grows. Internal to CropDecoder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "decode/scratch_vector.h"

namespace stoker {

template <class T>
class AlignedBuffer {
 public:
  // Makes room for at least `count` values. New memory is zeroed, so that no result depends on its
  // old content.
  T* grow(size_t count) {
    if (count > size_) {
      release();
      data_ = make_scratch<T>(count);
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
  // Returns the bytes that the buffer will hold after grow(count).
  int64_t bytes_with(size_t count) const {
    return static_cast<int64_t>((count > size_ ? count : size_) * sizeof(T));
  }
  int64_t bytes() const { return static_cast<int64_t>(size_ * sizeof(T)); }

 private:
  ScratchArray<T> data_;
  size_t size_ = 0;
};

// The number of values that a buffer must hold.
template <class T>
struct BufferNeed {
  AlignedBuffer<T>* buffer;
  size_t count;
};
template <class T>
BufferNeed(AlignedBuffer<T>*, size_t) -> BufferNeed<T>;  // not every compiler deduces it by itself

// Grows buffers that together must not hold more than `limit` bytes. Each buffer keeps the size of
// the largest image that it met, which may be another image for each of them; if the sum exceeds
// the limit, all are released first. Returns false if these needs alone exceed the limit.
template <class... T>
bool grow_within(int64_t limit, BufferNeed<T>... needs) {
  if ((static_cast<int64_t>(needs.count * sizeof(T)) + ...) > limit) return false;
  if ((needs.buffer->bytes_with(needs.count) + ...) > limit) (needs.buffer->release(), ...);
  (needs.buffer->grow(needs.count), ...);
  return true;
}

}  // namespace stoker
