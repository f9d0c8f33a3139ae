// Vectors for scratch that grows with a picture: they charge the lease of the thread that uses them
// (memory_budget.h), and large ones go back to the system when they are freed, which malloc() would
// keep for the next one.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "decode/memory_budget.h"

namespace stoker {

// Returns memory that is aligned for any vector. Throws std::bad_alloc, or OverBudget.
void* take_scratch(size_t bytes);
void free_scratch(void* memory, size_t bytes) noexcept;

struct FreeScratch {
  size_t bytes = 0;
  void operator()(void* memory) const { free_scratch(memory, bytes); }
};
template <class T>
using ScratchArray = std::unique_ptr<T[], FreeScratch>;
// Returns an array whose content is anything.
template <class T>
ScratchArray<T> make_scratch(size_t count) {
  const size_t bytes = count * sizeof(T);
  return {static_cast<T*>(take_scratch(bytes)), FreeScratch{bytes}};
}

template <class T>
struct ScratchAllocator {
  using value_type = T;
  ScratchAllocator() = default;
  template <class U>
  ScratchAllocator(const ScratchAllocator<U>&) {}  // NOLINT: as allocators convert
  T* allocate(size_t count) { return static_cast<T*>(take_scratch(count * sizeof(T))); }
  void deallocate(T* memory, size_t count) noexcept { free_scratch(memory, count * sizeof(T)); }
  bool operator==(const ScratchAllocator&) const = default;
};

template <class T>
using ScratchVector = std::vector<T, ScratchAllocator<T>>;

}  // namespace stoker
