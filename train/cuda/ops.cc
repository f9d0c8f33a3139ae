#include "train/cuda/ops.h"

#include <nvtx3/nvToolsExt.h>

#include <optional>
#include <utility>

#include "train/cuda/folded_conv.h"
#include "train/cuda/kernels.h"

namespace stoker {
namespace {

using cuda::check;

class CudaGraph final : public DeviceGraph {
 public:
  CudaGraph(int ordinal, cudaStream_t stream, cudaGraph_t graph)
      : ordinal_(ordinal), stream_(stream) {
    const cudaError_t error = cudaGraphInstantiate(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    check(error, "cudaGraphInstantiate");
  }
  ~CudaGraph() override { cudaGraphExecDestroy(executable_); }
  void launch() override {
    check(cudaSetDevice(ordinal_), "cudaSetDevice");
    check(cudaGraphLaunch(executable_, stream_), "cudaGraphLaunch");
  }

 private:
  const int ordinal_;
  const cudaStream_t stream_;
  cudaGraphExec_t executable_ = nullptr;
};

// The counters of kernels that sum over blocks; the stream runs these one after the other.
class Tickets {
 public:
  explicit Tickets(cudaStream_t stream) {
    constexpr size_t kBytes = cuda::kTickets * sizeof(unsigned);
    void* data = nullptr;
    check(cudaMalloc(&data, kBytes), "cudaMalloc");
    data_.reset(static_cast<unsigned*>(data));
    check(cudaMemsetAsync(data, 0, kBytes, stream), "cudaMemsetAsync");
  }
  unsigned* get() const { return data_.get(); }

 private:
  struct Free {
    void operator()(unsigned* data) const { cudaFree(data); }
  };
  std::unique_ptr<unsigned, Free> data_;
};

class CudaOps final : public DeviceOps {
 public:
  CudaOps(int ordinal, cudaStream_t stream, std::unique_ptr<CudaLibraries> libraries)
      : ordinal_(ordinal), stream_(stream), libraries_(std::move(libraries)), tickets_(here()) {}

  std::string name() const override {
    int runtime = 0;
    cudaRuntimeGetVersion(&runtime);
    return libraries_->name() + ", CUDA runtime " + std::to_string(runtime / 1000) + "." +
           std::to_string(runtime / 10 % 100);
  }
  int64_t free_bytes() const override {
    here();
    size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return static_cast<int64_t>(free);
  }

  void begin_capture() override {
    check(cudaStreamBeginCapture(here(), cudaStreamCaptureModeThreadLocal),
          "cudaStreamBeginCapture");
  }
  std::unique_ptr<DeviceGraph> end_capture() override {
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(here(), &graph), "cudaStreamEndCapture");
    return std::make_unique<CudaGraph>(ordinal_, stream_, graph);
  }
  void push_range(const char* name) override { nvtxRangePushA(name); }
  void pop_range() override { nvtxRangePop(); }

  void zero(void* data, int64_t bytes) override {
    check(cudaMemsetAsync(data, 0, static_cast<size_t>(bytes), here()), "cudaMemsetAsync");
  }
  void copy(void* target, const void* source, int64_t bytes) override {
    check(cudaMemcpyAsync(target, source, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice,
                          here()),
          "cudaMemcpyAsync");
  }
  void load_view(const ImageShape& s, const uint8_t* images, const View& view, void* out) override {
    cuda::load_view(here(), s, images, view, out);
  }

  std::unique_ptr<DeviceConv> make_conv(const ConvShape& s, bool backward) override {
    const cudaStream_t stream = here();
    const std::optional<FoldedShape> shape = fold(s);
    if (!shape) return libraries_->make_conv(s, backward);
    return make_folded_conv(stream, *shape, libraries_->make_conv(shape->folded, backward));
  }
  void add_bias(int64_t pixels, int channels, Precision type, const float* bias, Activation kind,
                void* x) override {
    cuda::add_bias(here(), pixels, channels, type, bias, kind, x);
  }
  void sum_pixels(int64_t pixels, int channels, Precision type, const void* dy, float* sums,
                  void* scratch) override {
    cuda::sum_pixels(here(), pixels, channels, type, dy, sums, scratch, tickets_.get());
  }
  void norm_training(const NormShape& s, const NormForward& a) override {
    cuda::norm_training(here(), s, a, tickets_.get());
  }
  void norm_inference(const NormShape& s, const NormForward& a) override {
    cuda::norm_inference(here(), s, a);
  }
  void norm_backward(const NormShape& s, const NormBackward& a) override {
    cuda::norm_backward(here(), s, a, tickets_.get());
  }
  void norm_statistics(const NormShape& s, const NormForward& a, float* own) override {
    cuda::norm_statistics(here(), s, a, own, tickets_.get());
  }
  void norm_united(const NormShape& s, const NormForward& a, const NormReplicas& all) override {
    cuda::norm_united(here(), s, a, all);
  }
  void norm_backward_sums(const NormShape& s, const NormBackward& a, float* own) override {
    cuda::norm_backward_sums(here(), s, a, own, tickets_.get());
  }
  void norm_backward_united(const NormShape& s, const NormBackward& a,
                            const NormReplicas& all) override {
    cuda::norm_backward_united(here(), s, a, all);
  }

  void activate(Activation kind, int64_t count, Precision type, const void* x, void* y) override {
    cuda::activate(here(), kind, count, type, x, y);
  }
  void activate_backward(Activation kind, int64_t count, Precision type, const void* seen,
                         const void* dy, void* dx) override {
    cuda::activate_backward(here(), kind, count, type, seen, dy, dx);
  }
  void add(int64_t count, Precision type, Activation relu_or_none, const void* a, const void* b,
           void* out) override {
    cuda::add(here(), count, type, relu_or_none, a, b, out);
  }
  void max_pool(const PoolShape& s, const void* x, void* y, uint8_t* argmax) override {
    cuda::max_pool(here(), s, x, y, argmax);
  }
  void max_pool_backward(const PoolShape& s, const void* dy, const uint8_t* argmax,
                         void* dx) override {
    cuda::max_pool_backward(here(), s, dy, argmax, dx);
  }
  void average_pool(const PoolShape& s, const void* x, void* y) override {
    cuda::average_pool(here(), s, x, y);
  }
  void average_pool_backward(const PoolShape& s, const void* dy, void* dx) override {
    cuda::average_pool_backward(here(), s, dy, dx);
  }
  void copy_channels(const ChannelsShape& s, const void* x, void* y) override {
    cuda::copy_channels(here(), s, x, y);
  }
  void pad_channels(const PadShape& s, const void* x, void* y) override {
    cuda::pad_channels(here(), s, x, y);
  }
  void pad_channels_backward(const PadShape& s, const void* dy, void* dx) override {
    cuda::pad_channels_backward(here(), s, dy, dx);
  }

  void dropout(const DropoutShape& s, const int64_t* position, const void* values,
               void* out) override {
    cuda::dropout(here(), s, position, values, out);
  }
  void set(int64_t value, int64_t* target) override { cuda::set(here(), value, target); }

  void linear(const LinearShape& s, const void* x, const void* weight, const float* bias,
              float* logits, void* workspace) override {
    here();
    libraries_->linear(s, x, weight, logits, workspace);
    if (bias != nullptr) cuda::add_logit_bias(stream_, s, bias, logits);
  }
  void linear_backward(const LinearShape& s, const void* x, const void* weight, const void* dlogits,
                       float* dweight, float* dbias, void* dx, void* workspace) override {
    here();
    libraries_->linear_weights(s, x, dlogits, dweight, workspace);
    if (dbias != nullptr) cuda::sum_logit_gradients(stream_, s, dlogits, dbias);
    if (dx != nullptr) libraries_->linear_data(s, weight, dlogits, dx, workspace);
  }
  void loss(const LossShape& s, const float* logits, const LossRows& rows, void* dlogits,
            float* sample_metrics, float* metrics) override {
    cuda::loss(here(), s, logits, rows, dlogits, sample_metrics, metrics);
  }

  void cast_to_fp32(const TensorChunk* chunks, int count, const void* bf16, float* out) override {
    cuda::cast_to_fp32(here(), chunks, count, bf16, out);
  }
  void cast_to_bf16(int64_t count, const float* values, void* bf16) override {
    cuda::cast_to_bf16(here(), count, values, bf16);
  }
  void accumulate(int64_t count, const float* from, float* into) override {
    cuda::accumulate(here(), count, from, into);
  }
  void decide(const UpdateShape& s, const float* reduced, FiniteCheck* check,
              void* scratch) override {
    cuda::decide(here(), s, reduced, check, scratch);
  }
  void scale_tensors(const UpdateShape& s, const UpdateRates* rates, const FiniteCheck* check,
                     const float* reduced, const float* weights, TensorSquares* squares,
                     TensorScale* scales) override {
    cuda::scale_tensors(here(), s, rates, check, reduced, weights, squares, scales);
  }
  void update(const UpdateShape& s, const UpdateRates* rates, const FiniteCheck* check,
              const TensorScale* scales, const float* reduced,
              const UpdatedStates& states) override {
    cuda::update(here(), s, rates, check, scales, reduced, states);
  }
  void move_statistics(const UpdateShape& s, const FiniteCheck* check, const float* reduced,
                       float* statistics) override {
    cuda::move_statistics(here(), s, check, reduced, statistics);
  }
  void blend(int64_t count, float decay, bool pull, float* average, float* current) override {
    cuda::blend(here(), count, decay, pull, average, current);
  }

 private:
  cudaStream_t here() const {
    check(cudaSetDevice(ordinal_), "cudaSetDevice");
    return stream_;
  }

  const int ordinal_;
  const cudaStream_t stream_;
  const std::unique_ptr<CudaLibraries> libraries_;
  const Tickets tickets_;
};

}  // namespace

std::unique_ptr<DeviceOps> make_cuda_ops(int ordinal, cudaStream_t stream,
                                         std::unique_ptr<CudaLibraries> libraries) {
  return std::make_unique<CudaOps>(ordinal, stream, std::move(libraries));
}

}  // namespace stoker
