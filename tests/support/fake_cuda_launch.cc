// Kernels on the fake CUDA runtime: the names that nvcc gives them, and their replacements.
#include <cuda_runtime_api.h>

#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "staging/normalise.h"
#include "staging/row_edits.h"
#include "tests/support/fake_cuda.h"
#include "tests/support/fake_cuda_runtime.h"

namespace {

struct FakeKernel {
  std::string part_of_name;
  std::vector<size_t> bytes;
  std::function<void(void**)> work;
};

// The kernels of staging/, by their twins on the host.
std::deque<FakeKernel> staging_kernels() {
  using stoker::NormaliseArgs, stoker::RowEditArgs;
  return {{"normalise_kernel",
           {sizeof(NormaliseArgs)},
           [](void** arguments) {
             stoker::normalise_on_host(*static_cast<const NormaliseArgs*>(arguments[0]));
           }},
          {"row_edits_kernel", {sizeof(RowEditArgs)}, [](void** arguments) {
             stoker::edit_rows_on_host(*static_cast<const RowEditArgs*>(arguments[0]));
           }}};
}

struct Kernels {
  std::mutex mutex;
  std::map<const void*, std::string> names;  // host function -> mangled name; guarded by mutex
  std::deque<FakeKernel> fakes = staging_kernels();  // never shrinks; guarded by mutex
};

Kernels& kernels() {
  static Kernels* all = new Kernels;  // streams' threads may outlive main()
  return *all;
}

const FakeKernel* kernel_of(const void* function) {
  std::lock_guard lock(kernels().mutex);
  const std::string& name = kernels().names[function];
  for (const FakeKernel& kernel : kernels().fakes) {
    if (name.find(kernel.part_of_name) != std::string::npos) return &kernel;
  }
  return nullptr;
}

cudaError_t launch(const void* function, void** args, cudaStream_t stream) {
  const FakeKernel* kernel = kernel_of(function);
  if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
  std::vector<std::vector<std::byte>> copies;
  for (size_t i = 0; i < kernel->bytes.size(); ++i) {
    const auto* from = static_cast<const std::byte*>(args[i]);
    copies.emplace_back(from, from + kernel->bytes[i]);
  }
  stoker::testing::fake_cuda_stream(stream).call([kernel, copies]() mutable {
    std::vector<void*> addresses;
    for (auto& copy : copies) addresses.push_back(copy.data());
    kernel->work(addresses.data());
  });
  return cudaSuccess;
}

}  // namespace

namespace stoker::testing {

void fake_cuda_kernel(const std::string& part_of_name, std::vector<size_t> bytes,
                      std::function<void(void**)> work) {
  std::lock_guard lock(kernels().mutex);
  for (const FakeKernel& kernel : kernels().fakes) {
    if (kernel.part_of_name == part_of_name) return;
  }
  kernels().fakes.push_back({part_of_name, std::move(bytes), std::move(work)});
}

}  // namespace stoker::testing

extern "C" {

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 1; }
void __cudaRegisterFunction(void**, const char* host, char*, const char* device, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  std::lock_guard lock(kernels().mutex);
  kernels().names[host] = device;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, const void*) {
  return stoker::testing::fake_cuda_call("cudaFuncGetAttributes", [] { return cudaSuccess; });
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                void** args) {
  return stoker::testing::fake_cuda_call("cudaLaunchKernelExC",
                                         [&] { return launch(function, args, config->stream); });
}

// nvcc generates calls of these for <<<>>> even if nothing uses it, so they must exist.
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, size_t*, void*) {
  return cudaErrorNotSupported;
}
cudaError_t __cudaGetKernel(cudaKernel_t*, const void*) { return cudaErrorNotSupported; }
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t) {
  return cudaErrorNotSupported;
}
}
