#include "staging/cuda_context.h"

#include <dlfcn.h>

#include <stdexcept>

#include "staging/cuda_driver.h"

namespace stoker {

// Looked up at run time: a program that links the driver does not start without one.
struct CudaContext::Driver {
  int (*get)(int* device, int ordinal) = nullptr;
  int (*retain)(void** context, int device) = nullptr;
  int (*current)(void** context) = nullptr;
  int (*push)(void* context) = nullptr;
  int (*pop)(void** context) = nullptr;
};

namespace {

template <typename Function>
void find_context_call(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  if (function == nullptr) {
    throw std::runtime_error(std::string("the NVIDIA driver has no ") + name);
  }
}

}  // namespace

CudaContext::CudaContext(int ordinal)
    : ordinal_(ordinal), name_("cuda:" + std::to_string(ordinal)), driver_(new Driver) {
  try {
    void* library = dlopen(kCudaDriver, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(dlerror());
    find_context_call(library, "cuDeviceGet", driver_->get);
    find_context_call(library, "cuDevicePrimaryCtxRetain", driver_->retain);
    find_context_call(library, "cuCtxGetCurrent", driver_->current);
    find_context_call(library, "cuCtxPushCurrent_v2", driver_->push);
    find_context_call(library, "cuCtxPopCurrent_v2", driver_->pop);
    int device = 0;
    int error = driver_->get(&device, ordinal);
    if (error == 0) error = driver_->retain(&context_, device);
    if (error != 0) {
      // The runtime's error numbers are the same as the driver's.
      throw std::runtime_error("the GPU cannot be used: " +
                               cuda_error_text(static_cast<cudaError_t>(error)));
    }
  } catch (const std::exception& error) {
    delete driver_;
    throw std::runtime_error(name_ + ": " + error.what());
  }
}

CudaContext::~CudaContext() { delete driver_; }

CudaContext::Current::Current(const CudaContext& context) : Current(context, std::nothrow) {
  context.check(error_, "cuCtxPushCurrent");
}

CudaContext::Current::Current(const CudaContext& context, std::nothrow_t) noexcept
    : context_(context) {
  void* current = nullptr;
  if (context.driver_->current(&current) == 0 && current == context.context_) return;
  error_ = static_cast<cudaError_t>(context.driver_->push(context.context_));
  pushed_ = error_ == cudaSuccess;
}

CudaContext::Current::~Current() {
  void* popped = nullptr;
  if (pushed_) context_.driver_->pop(&popped);
}

void CudaContext::throw_if_failed() const {
  MutexLock lock(mutex_);
  if (!failure_.empty()) throw std::runtime_error(failure_);
}

void CudaContext::check(cudaError_t error, const char* call) const {
  if (error == cudaSuccess) return;
  MutexLock lock(mutex_);
  if (failure_.empty()) failure_ = name_ + ": " + call + ": " + cuda_error_text(error);
  throw std::runtime_error(failure_);
}

std::string cuda_error_text(cudaError_t error) {
  return std::string(cudaGetErrorString(error)) + " (" + cudaGetErrorName(error) + ")";
}

}  // namespace stoker
