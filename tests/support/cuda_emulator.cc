#include "tests/support/cuda_emulator.h"

#include <cuda_runtime_api.h>

#include <memory>
#include <new>
#include <vector>

#include "tests/support/host_ops.h"
#include "train/cuda/ops.h"

using Work = std::function<void()>;

struct CUgraph_st {
  std::vector<Work> work;
};
struct CUgraphExec_st {
  std::shared_ptr<const std::vector<Work>> work;
};
struct CUstream_st {
  stoker::Stream* stream = nullptr;
  bool capturing = false;
  std::vector<Work> captured;
};

namespace cuda_emulator {

bool launchable(const cudaLaunchConfig_t& c) {
  const unsigned threads = c.blockDim.x * c.blockDim.y * c.blockDim.z;
  return c.gridDim.x > 0 && c.gridDim.y > 0 && c.gridDim.y < 65536 && threads > 0 &&
         threads <= 1024 && c.stream != nullptr;
}

void queue(cudaStream_t stream, Work work) {
  if (stream->capturing) {
    stream->captured.push_back(std::move(work));
  } else {
    stream->stream->call(std::move(work));
  }
}

}  // namespace cuda_emulator

const char* cudaGetErrorString(cudaError_t) { return "refused by the emulator"; }
const char* cudaGetErrorName(cudaError_t) { return "cudaError"; }
cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : cudaErrorInvalidValue; }
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 17;  // 51 blocks at a time: two groups of splits, the second one not full
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** data, size_t bytes) {
  *data = ::operator new (bytes, std::align_val_t{256});
  std::memset(*data, 0xff, bytes);
  return cudaSuccess;
}
cudaError_t cudaFree(void* data) {
  ::operator delete (data, std::align_val_t{256});
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = *total = size_t{1} << 40;
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* data, int value, size_t bytes, cudaStream_t stream) {
  cuda_emulator::queue(stream, [=] { std::memset(data, value, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  cuda_emulator::queue(stream, [=] { std::memcpy(target, source, bytes); });
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (stream->capturing) return cudaErrorStreamCapture;
  stream->capturing = true;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (!stream->capturing) return cudaErrorStreamCapture;
  stream->capturing = false;
  *graph = new CUgraph_st{std::exchange(stream->captured, {})};
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  *executable = new CUgraphExec_st{std::make_shared<const std::vector<Work>>(graph->work)};
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  if (stream->capturing) return cudaErrorStreamCapture;
  stream->stream->call([work = executable->work] {
    for (const Work& each : *work) each();
  });
  return cudaSuccess;
}

namespace stoker {
namespace {

class EmulatedConv final : public DeviceConv {
 public:
  EmulatedConv(cudaStream_t stream, const ConvShape& shape) : stream_(stream), shape_(shape) {}
  int64_t workspace_bytes(ConvPass) const override { return 1000; }
  std::string implementation(ConvPass) const override { return "conv:host"; }
  void run(ConvPass pass, const void* a, const void* b, void* out, void* workspace) override {
    cuda_emulator::queue(stream_, [=, shape = shape_] {
      std::memset(workspace, 0xff, 1000);
      host::convolve(pass, shape, a, b, out);
    });
  }

 private:
  const cudaStream_t stream_;
  const ConvShape shape_;
};

// Also keeps the stream's handle while the operations live.
class EmulatedLibraries final : public CudaLibraries {
 public:
  explicit EmulatedLibraries(Stream& stream) { handle_.stream = &stream; }
  cudaStream_t stream() { return stream_; }
  std::string name() const override { return "no libraries"; }
  std::unique_ptr<DeviceConv> make_conv(const ConvShape& shape, bool) override {
    return std::make_unique<EmulatedConv>(stream_, shape);
  }
  void linear(const LinearShape& s, const void* x, const void* weight, float* logits,
              void*) override {
    cuda_emulator::queue(stream_, [=] { host::linear(s, x, weight, nullptr, logits); });
  }
  void linear_weights(const LinearShape& s, const void* x, const void* dlogits, float* dweight,
                      void*) override {
    cuda_emulator::queue(stream_, [=] {
      const std::vector<float> no_weights(static_cast<size_t>(s.classes) * s.features);
      host::linear_backward(s, x, no_weights.data(), dlogits, dweight, nullptr, nullptr);
    });
  }
  void linear_data(const LinearShape& s, const void* weight, const void* dlogits, void* dx,
                   void*) override {
    cuda_emulator::queue(stream_, [=] {
      const std::vector<float> no_input(static_cast<size_t>(s.rows) * s.features);
      std::vector<float> unused(static_cast<size_t>(s.classes) * s.features);
      host::linear_backward(s, no_input.data(), weight, dlogits, unused.data(), nullptr, dx);
    });
  }

 private:
  CUstream_st handle_;
  const cudaStream_t stream_ = &handle_;
};

}  // namespace

DeviceOpsFactory emulated_cuda_ops_factory() {
  return [](Device&, Stream& stream) {
    auto libraries = std::make_unique<EmulatedLibraries>(stream);
    const cudaStream_t handle = libraries->stream();
    return make_cuda_ops(0, handle, std::move(libraries));
  };
}

}  // namespace stoker
