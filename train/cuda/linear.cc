#include "train/cuda/linear.h"

#include <stdexcept>
#include <string>

namespace stoker {
namespace {

void check_cublas(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error(std::string("cuBLASLt: ") + call + ": " +
                           cublasLtGetStatusString(status));
}

cudaDataType_t type_of(Precision precision) {
  return precision == Precision::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

}  // namespace

struct CudaLinear::Plan {
  struct Layout {
    Layout(Precision type, int64_t rows, int64_t columns, int64_t stride) {
      check_cublas(cublasLtMatrixLayoutCreate(&layout, type_of(type), static_cast<uint64_t>(rows),
                                              static_cast<uint64_t>(columns), stride),
                   "cublasLtMatrixLayoutCreate");
    }
    ~Layout() { cublasLtMatrixLayoutDestroy(layout); }
    Layout(const Layout&) = delete;
    Layout& operator=(const Layout&) = delete;
    cublasLtMatrixLayout_t layout = nullptr;
  };

  explicit Plan(const Product& p)
      : product(p),
        a(p.type, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, p.stride_a),
        b(p.type, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n, p.stride_b),
        d(p.result, p.m, p.n, p.stride_d) {
    // CUBLAS_COMPUTE_32F does not use TF32 for fp32 operands.
    check_cublas(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F),
                 "cublasLtMatmulDescCreate");
    const cublasOperation_t op_a = p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t op_b = p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    check_cublas(
        cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &op_a, sizeof op_a),
        "cublasLtMatmulDescSetAttribute");
    check_cublas(
        cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSB, &op_b, sizeof op_b),
        "cublasLtMatmulDescSetAttribute");
  }
  ~Plan() { cublasLtMatmulDescDestroy(operation); }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  const Product product;
  const Layout a, b, d;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
};

CudaLinear::CudaLinear(cudaStream_t stream) : stream_(stream) {
  check_cublas(cublasLtCreate(&handle_), "cublasLtCreate");
}

CudaLinear::~CudaLinear() {
  plans_.clear();
  cublasLtDestroy(handle_);
}

const CudaLinear::Plan& CudaLinear::plan(const Product& product) {
  for (const auto& each : plans_) {
    if (each->product == product) return *each;
  }
  auto made = std::make_unique<Plan>(product);
  cublasLtMatmulPreference_t wish = nullptr;
  check_cublas(cublasLtMatmulPreferenceCreate(&wish), "cublasLtMatmulPreferenceCreate");
  const auto bytes = static_cast<size_t>(kLinearWorkspaceBytes);
  cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes,
                                       sizeof bytes);
  cublasLtMatmulHeuristicResult_t result{};
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle_, made->operation, made->a.layout, made->b.layout,
                                     made->d.layout, made->d.layout, wish, 1, &result, &found);
  cublasLtMatmulPreferenceDestroy(wish);
  if (status != CUBLAS_STATUS_SUCCESS || found == 0) {
    throw std::runtime_error("cuBLASLt knows no way to multiply (" + std::to_string(product.m) +
                             ", " + std::to_string(product.k) + ") by (" +
                             std::to_string(product.k) + ", " + std::to_string(product.n) +
                             "): " + cublasLtGetStatusString(status));
  }
  made->algorithm = result.algo;
  plans_.push_back(std::move(made));
  return *plans_.back();
}

void CudaLinear::multiply(const Product& product, float alpha, const void* a, const void* b,
                          void* d, void* workspace) {
  const Plan& p = plan(product);
  const float beta = 0;
  check_cublas(cublasLtMatmul(handle_, p.operation, &alpha, a, p.a.layout, b, p.b.layout, &beta, d,
                              p.d.layout, d, p.d.layout, &p.algorithm, workspace,
                              static_cast<size_t>(kLinearWorkspaceBytes), stream_),
               "cublasLtMatmul");
}

// A row-major (rows, columns) matrix is a column-major (columns, rows) matrix.
void CudaLinear::forward(const LinearShape& s, const void* x, const void* weight, float* logits,
                         void* workspace) {
  Product p;  // logits^T (classes, rows) = weight (classes, features) * x^T
  p.m = s.classes;
  p.n = s.rows;
  p.k = s.features;
  p.transpose_a = true;
  p.stride_a = s.features;
  p.stride_b = s.features;
  p.stride_d = s.stride;
  p.type = s.type;
  multiply(p, s.scale, weight, x, logits, workspace);
}

void CudaLinear::backward_weights(const LinearShape& s, const void* x, const void* dlogits,
                                  float* dweight, void* workspace) {
  Product p;  // dweight^T (features, classes) = x^T * dlogits
  p.m = s.features;
  p.n = s.classes;
  p.k = s.rows;
  p.transpose_b = true;
  p.stride_a = s.features;
  p.stride_b = s.stride;
  p.stride_d = s.features;
  p.type = s.type;
  multiply(p, s.scale, x, dlogits, dweight, workspace);
}

void CudaLinear::backward_data(const LinearShape& s, const void* weight, const void* dlogits,
                               void* dx, void* workspace) {
  Product p;  // dx^T (features, rows) = weight^T * dlogits^T
  p.m = s.features;
  p.n = s.rows;
  p.k = s.classes;
  p.stride_a = s.features;
  p.stride_b = s.stride;
  p.stride_d = s.features;
  p.type = p.result = s.type;
  multiply(p, s.scale, weight, dlogits, dx, workspace);
}

}  // namespace stoker
