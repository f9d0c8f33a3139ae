#include "train/cpu/memory.h"

#include <sys/mman.h>

#include <stdexcept>
#include <string>

namespace stoker {

CpuMemory::CpuMemory(int64_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    throw std::runtime_error("the CPU engine cannot get " + std::to_string(bytes >> 20) +
                             " MiB of memory");
  }
  madvise(data, bytes, MADV_HUGEPAGE);  // may fail, which does no harm
  data_ = static_cast<std::byte*>(data);
}

CpuMemory::~CpuMemory() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace stoker
