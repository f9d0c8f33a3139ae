#include "decode/scratch_vector.h"

#include <hwy/aligned_allocator.h>
#include <sys/mman.h>

#include <new>

namespace stoker {
namespace {

// AddressSanitizer watches what malloc() returns, and nothing else.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STOKER_WATCHED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(STOKER_WATCHED)
constexpr size_t kMapped = ~size_t{0};
#else
constexpr size_t kMapped = size_t{1} << 20;
#endif

}  // namespace

void* take_scratch(size_t bytes) {
  charge_scratch(static_cast<int64_t>(bytes));
  void* memory = nullptr;
  if (bytes >= kMapped) {
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) memory = nullptr;
  } else {
    memory = hwy::AllocateAlignedBytes(bytes, nullptr, nullptr);
  }
  if (memory) return memory;
  refund_scratch(static_cast<int64_t>(bytes));
  throw std::bad_alloc();
}

void free_scratch(void* memory, size_t bytes) noexcept {
  if (!memory) return;
  if (bytes >= kMapped) {
    munmap(memory, bytes);
  } else {
    hwy::FreeAlignedBytes(memory, nullptr, nullptr);
  }
  refund_scratch(static_cast<int64_t>(bytes));
}

}  // namespace stoker
