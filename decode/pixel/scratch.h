// Memory that an operation on pixels needs while it runs. A worker owns one and passes it to every
// call: it grows to what the largest image needed, and nothing is allocated after that. Its content
// means nothing between calls. Not safe to share between threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "decode/scratch_vector.h"

namespace stoker {

class PixelScratch {
 public:
  // Returns at least `count` values, aligned for any vector, with any content. The values of
  // earlier calls are gone.
  template <class T>
  T* grow(size_t count) {
    if (count * sizeof(T) > bytes_) {
      memory_.reset();
      bytes_ = 0;
      memory_ = make_scratch<std::byte>(count * sizeof(T));
      std::memset(memory_.get(), 0, count * sizeof(T));
      bytes_ = count * sizeof(T);
    }
    return reinterpret_cast<T*>(memory_.get());
  }

  int64_t bytes() const { return static_cast<int64_t>(bytes_); }

 private:
  ScratchArray<std::byte> memory_;
  size_t bytes_ = 0;
};

}  // namespace stoker
