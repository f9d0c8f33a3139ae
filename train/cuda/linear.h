// The linear layer through cuBLASLt: bf16 operands, fp32 sums. Only this class uses cuBLASLt.
// Owner: make_cuda_libraries(). Threads: one at a time; the stream's GPU is current. Errors:
// std::runtime_error.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "train/device/ops.h"

namespace stoker {

class CudaLinear {
 public:
  explicit CudaLinear(cudaStream_t stream);
  ~CudaLinear();
  CudaLinear(const CudaLinear&) = delete;
  CudaLinear& operator=(const CudaLinear&) = delete;

  // See DeviceOps::linear() and linear_backward(); these are without the bias.
  void forward(const LinearShape& s, const void* x, const void* weight, float* logits,
               void* workspace);
  void backward_weights(const LinearShape& s, const void* x, const void* dlogits, float* dweight,
                        void* workspace);
  void backward_data(const LinearShape& s, const void* weight, const void* dlogits, void* dx,
                     void* workspace);

 private:
  // d (m, n) = alpha * op(a) * op(b), all column-major; the sum is over k.
  struct Product {
    int64_t m = 0, n = 0, k = 0;
    bool transpose_a = false, transpose_b = false;
    int64_t stride_a = 0, stride_b = 0, stride_d = 0;
    Precision type = Precision::fp32;  // of a and b
    Precision result = Precision::fp32;
    bool operator==(const Product&) const = default;
  };
  struct Plan;
  const Plan& plan(const Product& product);
  void multiply(const Product& product, float alpha, const void* a, const void* b, void* d,
                void* workspace);

  const cudaStream_t stream_;
  cublasLtHandle_t handle_ = nullptr;
  std::vector<std::unique_ptr<Plan>> plans_;
};

}  // namespace stoker
