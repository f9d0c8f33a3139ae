#include "staging/cuda_memory.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <new>
#include <stdexcept>

namespace stoker {
namespace {

constexpr size_t kPageableAlignment = 4096;

std::string mebibytes(size_t bytes) {
  return std::to_string((bytes + (1U << 20) - 1) >> 20) + " MiB";
}

// GPU memory, or pinned host memory; `release` is the call that frees it.
class CudaMemory final : public Memory {
 public:
  using Release = cudaError_t (*)(void*);
  CudaMemory(const CudaContext& context, void* data, size_t bytes, Release release)
      : context_(context),
        data_(static_cast<std::byte*>(data)),
        size_bytes_(bytes),
        release_(release) {}
  ~CudaMemory() override {
    const CudaContext::Current current(context_, std::nothrow);
    if (current.error() == cudaSuccess) release_(data_);
  }
  std::byte* data() override { return data_; }
  size_t size_bytes() const override { return size_bytes_; }

 private:
  const CudaContext& context_;
  std::byte* const data_;
  const size_t size_bytes_;
  const Release release_;
};

class PageableMemory final : public Memory {
 public:
  explicit PageableMemory(size_t bytes)
      : data_(
            static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kPageableAlignment}))),
        size_bytes_(bytes) {}
  ~PageableMemory() override { ::operator delete (data_, std::align_val_t{kPageableAlignment}); }
  PageableMemory(const PageableMemory&) = delete;
  PageableMemory& operator=(const PageableMemory&) = delete;
  std::byte* data() override { return data_; }
  size_t size_bytes() const override { return size_bytes_; }

 private:
  std::byte* const data_;
  const size_t size_bytes_;
};

// While it lives, this thread's new pages come from `node` if that has any. Uses system calls,
// because libnuma would be another dependency for two calls. If the system refuses (a container
// may), pages come from anywhere.
class NearNode {
 public:
  explicit NearNode(int node) {
    if (node < 0 || node >= static_cast<int>(kNodes)) return;
    if (syscall(SYS_get_mempolicy, &mode_, mask_.data(), kNodes, nullptr, 0) != 0) return;
    std::array<unsigned long, kWords> near{};
    near[static_cast<size_t>(node) / kWordBits] = 1UL << (static_cast<size_t>(node) % kWordBits);
    set_ = syscall(SYS_set_mempolicy, MPOL_PREFERRED, near.data(), kNodes) == 0;
  }
  ~NearNode() {
    if (set_) syscall(SYS_set_mempolicy, mode_, mask_.data(), kNodes);
  }
  NearNode(const NearNode&) = delete;
  NearNode& operator=(const NearNode&) = delete;

 private:
  static constexpr size_t kNodes = 1024;  // the largest number that Linux can be built for
  static constexpr size_t kWordBits = 8 * sizeof(unsigned long);
  static constexpr size_t kWords = kNodes / kWordBits;
  int mode_ = 0;
  std::array<unsigned long, kWords> mask_{};
  bool set_ = false;
};

}  // namespace

std::unique_ptr<Memory> allocate_on_gpu(const CudaContext& context, size_t bytes) {
  void* data = nullptr;
  const cudaError_t error = cudaMalloc(&data, std::max<size_t>(bytes, 1));
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // clears it for the next call
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    context.check(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
    throw std::runtime_error(context.name() + ": no room for " + mebibytes(bytes) + ": " +
                             mebibytes(free_bytes) + " of " + mebibytes(total_bytes) + " are free");
  }
  context.check(error, "cudaMalloc");
  return std::make_unique<CudaMemory>(context, data, bytes, [](void* p) { return cudaFree(p); });
}

std::unique_ptr<Memory> allocate_pinned(const CudaContext& context, size_t bytes, int numa_node,
                                        std::atomic<bool>& warned) {
  const size_t size = std::max<size_t>(bytes, 1);
  std::unique_ptr<Memory> memory;
  {
    NearNode near(numa_node);
    void* data = nullptr;
    const cudaError_t error = cudaHostAlloc(&data, size, cudaHostAllocPortable);
    if (error == cudaSuccess) {
      memory = std::make_unique<CudaMemory>(context, data, bytes,
                                            [](void* p) { return cudaFreeHost(p); });
    } else if (error == cudaErrorMemoryAllocation || error == cudaErrorOperatingSystem ||
               error == cudaErrorNotPermitted || error == cudaErrorNotSupported) {
      cudaGetLastError();
      memory = std::make_unique<PageableMemory>(size);
      if (!warned.exchange(true)) {
        std::fprintf(
            stderr,
            "stoker: %s: the system refuses to lock %s of memory (%s). Going on with "
            "ordinary memory: copies are slower and do not overlap. Allow more (ulimit -l, "
            "or memory.max of the control group) or ask for fewer or smaller batches.\n",
            context.name().c_str(), mebibytes(bytes).c_str(), cuda_error_text(error).c_str());
      }
    } else {
      context.check(error, "cudaHostAlloc");
    }
    // Allocates the pages, on the near node, before the first use.
    std::memset(memory->data(), 0, size);
  }
  return memory;
}

}  // namespace stoker
