// Buffers for the bytes of files, which charge the memory of the thread's row
// (decode/memory_budget.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "decode/memory_budget.h"

namespace stoker {

inline void free_file_buffer(std::vector<uint8_t>& buffer) {
  refund_scratch(static_cast<int64_t>(buffer.capacity()));
  std::vector<uint8_t>().swap(buffer);  // to assign {} would keep its memory
}

// Makes room for `size` bytes. A buffer that must grow loses its content. Throws OverBudget.
inline void grow_file_buffer(std::vector<uint8_t>& buffer, size_t size) {
  if (size > buffer.capacity()) {
    free_file_buffer(buffer);
    charge_scratch(static_cast<int64_t>(size));
  }
  if (size > buffer.size()) buffer.resize(size);
}

// Does the same for a buffer that keeps its content, or whose bytes can be read only once. It never
// throws OverBudget: the bytes are counted, and what the row asks for next may be refused.
inline void extend_file_buffer(std::vector<uint8_t>& buffer, size_t size) {
  if (size <= buffer.size()) return;
  const size_t before = buffer.capacity();
  buffer.resize(size);
  count_scratch(static_cast<int64_t>(buffer.capacity() - before));
}

}  // namespace stoker
