// Memory for samples that come and go: a buffer that was given back is used again for a sample that
// nearly fills it.
//
// A window holds thousands of pieces of all lengths, each let go at another time. malloc()
// keeps the holes between them, which no plan knows, and new memory costs more than what is written
// to it: a page fault takes longer than the copy of a page. Here what is in use has at most an
// eighth of slack, rounded up to lines of 64 bytes or, if large, to pages, and as much lies idle as
// there is room for beside it. Where nothing fits, a shorter large buffer is made longer, which
// keeps its pages. Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "staging/mutex.h"

namespace stoker {

class BufferPool {
 public:
  // Gives its memory back to the pool, which must outlive it.
  class Buffer {
   public:
    Buffer() = default;
    Buffer(Buffer&& other) noexcept { *this = std::move(other); }
    Buffer& operator=(Buffer&& other) noexcept;
    ~Buffer() { reset(); }

    uint8_t* get() const { return data_; }

   private:
    friend class BufferPool;
    Buffer(BufferPool* pool, uint8_t* data, size_t capacity)
        : pool_(pool), data_(data), capacity_(capacity) {}
    void reset();

    BufferPool* pool_ = nullptr;
    uint8_t* data_ = nullptr;
    size_t capacity_ = 0;
  };

  // Keeps what nobody uses while it has at most so many bytes in all. What is in use has no limit.
  explicit BufferPool(int64_t most_bytes) : most_bytes_(static_cast<size_t>(most_bytes)) {}
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // Returns at least `size` bytes, whatever is in them. Throws std::bad_alloc.
  Buffer take(int64_t size);
  int64_t idle_bytes() const;

 private:
  void give_back(uint8_t* data, size_t capacity) noexcept;
  void release(uint8_t* data, size_t capacity) REQUIRES(mutex_);

  const size_t most_bytes_;
  mutable Mutex mutex_;
  std::multimap<size_t, uint8_t*> idle_ GUARDED_BY(mutex_);  // by capacity
  size_t bytes_ GUARDED_BY(mutex_) = 0;                      // in use and idle
};

}  // namespace stoker
