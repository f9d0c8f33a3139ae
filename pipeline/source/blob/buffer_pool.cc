#include "pipeline/source/blob/buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <new>
#include <utility>

namespace stoker {
namespace {

// From here on memory is the system's, which gets it back at once. Each piece of it may count
// against the number of mappings that a process may have (65,530), so small buffers are malloc()'s.
constexpr size_t kMapped = 64 << 10;
// Memory of malloc(), and of the system, comes in multiples of these.
constexpr size_t kCacheLine = 64, kMappedPage = 4096;

size_t capacity_for(size_t size) {
  const size_t unit = size < kMapped ? kCacheLine : kMappedPage;
  return std::max<size_t>(1, (size + unit - 1) / unit) * unit;
}

uint8_t* allocate_buffer(size_t capacity) {
  if (capacity < kMapped) {
    void* data = std::malloc(capacity);
    if (data == nullptr) throw std::bad_alloc();
    return static_cast<uint8_t*>(data);
  }
  void* data = mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  return static_cast<uint8_t*>(data);
}

// Makes a piece of the system's memory longer. Its pages stay, wherever that lies then. Returns
// nullptr, and the piece is gone, if there is no room for it.
uint8_t* lengthen(uint8_t* data, size_t from, size_t to) {
  void* longer = mremap(data, from, to, MREMAP_MAYMOVE);
  if (longer != MAP_FAILED) return static_cast<uint8_t*>(longer);
  munmap(data, from);
  return nullptr;
}

void deallocate(uint8_t* data, size_t capacity) {
  if (capacity < kMapped) {
    std::free(data);
  } else {
    munmap(data, capacity);
  }
}

}  // namespace

BufferPool::Buffer& BufferPool::Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  reset();
  pool_ = std::exchange(other.pool_, nullptr);
  data_ = std::exchange(other.data_, nullptr);
  capacity_ = std::exchange(other.capacity_, 0);
  return *this;
}

void BufferPool::Buffer::reset() {
  if (pool_ != nullptr) pool_->give_back(data_, capacity_);
  pool_ = nullptr;
  data_ = nullptr;
  capacity_ = 0;
}

BufferPool::~BufferPool() {
  for (const auto& [capacity, data] : idle_) deallocate(data, capacity);
}

BufferPool::Buffer BufferPool::take(int64_t size) {
  const auto wanted = static_cast<size_t>(size);
  const size_t capacity = capacity_for(wanted);
  {
    const MutexLock lock(mutex_);
    const auto fitting = idle_.lower_bound(wanted);
    if (fitting != idle_.end() && fitting->first <= capacity_for(wanted + wanted / 8)) {
      const auto [idle_capacity, data] = *fitting;
      idle_.erase(fitting);
      return {this, data, idle_capacity};
    }
    // The longest of the shorter ones has most of the pages. It moves while nobody else takes or
    // returns memory: its old place may be that of a new buffer at once, and whoever wrote there
    // must have been before.
    uint8_t* data = nullptr;
    if (fitting != idle_.begin() && std::prev(fitting)->first >= kMapped) {
      const auto shorter = std::prev(fitting);
      bytes_ -= shorter->first;
      data = lengthen(shorter->second, shorter->first, capacity);
      idle_.erase(shorter);
    }
    bytes_ += capacity;
    // The largest make most room, and fit fewest.
    while (bytes_ > most_bytes_ && !idle_.empty()) {
      const auto largest = std::prev(idle_.end());
      release(largest->second, largest->first);
      idle_.erase(largest);
    }
    if (data != nullptr) return {this, data, capacity};
  }
  try {
    return {this, allocate_buffer(capacity), capacity};
  } catch (const std::bad_alloc&) {
    const MutexLock lock(mutex_);
    bytes_ -= capacity;
    throw;
  }
}

void BufferPool::give_back(uint8_t* data, size_t capacity) noexcept {
  const MutexLock lock(mutex_);
  if (bytes_ > most_bytes_) {
    release(data, capacity);
    return;
  }
  try {
    idle_.emplace(capacity, data);
  } catch (const std::bad_alloc&) {
    release(data, capacity);
  }
}

void BufferPool::release(uint8_t* data, size_t capacity) {
  deallocate(data, capacity);
  bytes_ -= capacity;
}

int64_t BufferPool::idle_bytes() const {
  const MutexLock lock(mutex_);
  size_t bytes = 0;
  for (const auto& [capacity, data] : idle_) bytes += capacity;
  return static_cast<int64_t>(bytes);
}

}  // namespace stoker
