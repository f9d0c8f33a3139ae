// The entry of libstoker_cuda_train.so.
#include "train/cuda/train_plugin.h"

#include "train/cuda/conv.h"
#include "train/cuda/kernels.h"
#include "train/cuda/linear.h"
#include "train/cuda/ops.h"

namespace stoker {
namespace {

// cuDNN and cuBLASLt. Owner: CudaOps. Threads: one at a time; the stream's GPU is current.
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
}  // namespace stoker

extern "C" __attribute__((visibility("default"))) const stoker::CudaTrainPlugin*
stoker_cuda_train_plugin() {
  static const stoker::CudaTrainPlugin plugin = {
      stoker::kCudaTrainPluginVersion, STOKER_BUILD_STAMP,
      [](int ordinal, void* stream, const stoker::DeviceTuning& tuning) {
        const auto on = static_cast<cudaStream_t>(stream);
        stoker::cuda::check(cudaSetDevice(ordinal), "cudaSetDevice");
        return stoker::make_cuda_ops(ordinal, on,
                                     std::make_unique<stoker::NvidiaLibraries>(on, tuning));
      },
      [](int ordinal, void* stream, const stoker::DeviceTuning& tuning,
         std::span<const stoker::ConvShape> shapes) {
        stoker::cuda::check(cudaSetDevice(ordinal), "cudaSetDevice");
        return stoker::time_fusions(static_cast<cudaStream_t>(stream), tuning, shapes);
      }};
  return &plugin;
}
