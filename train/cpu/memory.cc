#include "train/cpu/memory.h"

#include <sys/mman.h>

#include "staging/error_text.h"

namespace stoker {

CpuMemory::CpuMemory(int64_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw OutOfMemory("the CPU engine", static_cast<size_t>(bytes));
  madvise(data, bytes, MADV_HUGEPAGE);  // may fail, which does no harm
  data_ = static_cast<std::byte*>(data);
}

CpuMemory::~CpuMemory() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace stoker
