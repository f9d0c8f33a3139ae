#include "train/cuda/libraries.h"

#include "train/cuda/conv.h"
#include "train/cuda/linear.h"

namespace stoker {
namespace {

class NvidiaLibraries final : public CudaLibraries {
 public:
  NvidiaLibraries(cudaStream_t stream, const DeviceTuning& tuning)
      : convs_(stream, tuning), linear_(stream) {}

  std::string name() const override {
    const size_t dnn = cudnnGetVersion(), blas = cublasLtGetVersion();
    return "cuDNN " + std::to_string(dnn / 10000) + "." + std::to_string(dnn / 100 % 100) + " (" +
           convs_.summary() + "), cuBLASLt " + std::to_string(blas / 10000) + "." +
           std::to_string(blas / 100 % 100);
  }
  std::unique_ptr<DeviceConv> make_conv(const ConvShape& s, bool backward) override {
    return convs_.make(s, backward);
  }
  void linear(const LinearShape& s, const void* x, const void* weight, float* logits,
              void* workspace) override {
    linear_.forward(s, x, weight, logits, workspace);
  }
  void linear_weights(const LinearShape& s, const void* x, const void* dlogits, float* dweight,
                      void* workspace) override {
    linear_.backward_weights(s, x, dlogits, dweight, workspace);
  }
  void linear_data(const LinearShape& s, const void* weight, const void* dlogits, void* dx,
                   void* workspace) override {
    linear_.backward_data(s, weight, dlogits, dx, workspace);
  }

 private:
  CudaConvs convs_;
  CudaLinear linear_;
};

}  // namespace

std::unique_ptr<CudaLibraries> make_cuda_libraries(cudaStream_t stream,
                                                   const DeviceTuning& tuning) {
  return std::make_unique<NvidiaLibraries>(stream, tuning);
}

}  // namespace stoker
