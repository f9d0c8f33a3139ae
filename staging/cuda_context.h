// One GPU's primary context as the plugin's parts share it: whose turn it is on the calling thread,
// and whether the GPU has failed. The context itself stays until the process ends: it is
// everybody's, and the CUDA runtime does not survive its end. Internal to the plugins. Threads:
// any.
#pragma once

#include <cuda_runtime_api.h>

#include <new>
#include <string>

#include "staging/mutex.h"

namespace stoker {

class CudaContext {
 public:
  explicit CudaContext(int ordinal);  // throws std::runtime_error
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  // While it lives the calling thread works on this GPU; then on what it worked on before. Not
  // cudaSetDevice(): to set the former device again would make a context on a GPU that nobody uses.
  class Current {
   public:
    explicit Current(const CudaContext& context);  // throws as check() does
    // For destructors: with another error() than cudaSuccess the thread works on another GPU or
    // none, and no call of CUDA's is made.
    Current(const CudaContext& context, std::nothrow_t) noexcept;
    ~Current();
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

    cudaError_t error() const { return error_; }

   private:
    const CudaContext& context_;
    bool pushed_ = false;
    cudaError_t error_ = cudaSuccess;
  };

  const std::string& name() const { return name_; }
  int ordinal() const { return ordinal_; }

  // Throws what check() threw first.
  void throw_if_failed() const;
  // Nothing for success. Everything else is final: throws std::runtime_error with the GPU, `call`
  // and CUDA's text, and so will every later call for this GPU.
  void check(cudaError_t error, const char* call) const;

 private:
  struct Driver;
  const int ordinal_;
  const std::string name_;
  Driver* const driver_;
  void* context_ = nullptr;
  mutable Mutex mutex_;
  mutable std::string failure_ GUARDED_BY(mutex_);
};

// "out of memory (cudaErrorMemoryAllocation)"
std::string cuda_error_text(cudaError_t error);

}  // namespace stoker
