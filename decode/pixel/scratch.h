// Memory that an operation on pixels needs while it runs. A worker owns one and passes it to every
// call: it grows to what the largest image needed, and nothing is allocated after that. Its content
// means nothing between calls. Not safe to share between threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace stoker {

class PixelScratch {
 public:
  static constexpr size_t kAlignment = 64;  // bytes: the longest vector of any instruction set

  // Returns at least `count` values, aligned to kAlignment, with any content. The values of earlier
  // calls are gone.
  template <class T>
  T* grow(size_t count) {
    if (count * sizeof(T) > bytes_) {
      bytes_ = count * sizeof(T);
      memory_.reset();
      memory_.reset(new (std::align_val_t{kAlignment}) std::byte[bytes_]());
    }
    return reinterpret_cast<T*>(memory_.get());
  }

  int64_t bytes() const { return static_cast<int64_t>(bytes_); }

 private:
  struct Free {
    void operator()(std::byte* memory) const {
      ::operator delete[](memory, std::align_val_t{kAlignment});
    }
  };
  std::unique_ptr<std::byte[], Free> memory_;
  size_t bytes_ = 0;
};

}  // namespace stoker
