// One GPU's primary context, which the plugin's parts share: makes it current on the calling
// thread, and records whether the GPU has failed. The context is never released before the process
// ends: others use it, too, and the CUDA runtime does not survive its end. Internal to the plugins.
// Threads: any.
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

  // Makes this GPU current on the calling thread while it lives, and then restores the previous
  // one. It does not use cudaSetDevice(), because restoring the previous device with it would
  // create a context on a GPU that may be unused.
  class Current {
   public:
    explicit Current(const CudaContext& context);  // throws what check() throws
    // For destructors, which cannot throw: if error() is not cudaSuccess, the thread's current GPU
    // is another one or none, and the caller must make no CUDA call.
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

  // Throws the first error that check() threw, if any.
  void throw_if_failed() const;
  // Does nothing for success. Every other error is final: throws std::runtime_error with the GPU,
  // `call` and CUDA's text, and so does every later call for this GPU.
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

// Returns "out of memory (cudaErrorMemoryAllocation)".
std::string cuda_error_text(cudaError_t error);

}  // namespace stoker
