#include "train/cuda_conv.h"

#include <algorithm>
#include <limits>

#include "train/cuda_kernels.h"

namespace stoker {
namespace {

class CudaConv final : public DeviceConv {
 public:
  CudaConv(CudaConvs& convs, const ConvShape& shape, bool backward)
      : convs_(convs), shape_(shape), forward_(convs.plan(shape, ConvPass::forward)) {
    if (!backward) return;
    data_ = &convs.plan(shape, ConvPass::backward_data);
    weights_ = &convs.plan(shape, ConvPass::backward_weights);
  }

  int64_t workspace_bytes(ConvPass pass) const override { return plan(pass).workspace_bytes; }
  std::string implementation(ConvPass pass) const override {
    return describe(shape_, pass) + ": cuDNN " + plan(pass).name;
  }
  void run(ConvPass pass, const void* a, const void* b, void* out, void* workspace) override {
    convs_.execute(plan(pass), a, b, out, workspace);
  }

 private:
  const ConvPlan& plan(ConvPass pass) const {
    if (pass == ConvPass::forward) return forward_;
    return pass == ConvPass::backward_data ? *data_ : *weights_;
  }

  CudaConvs& convs_;
  const ConvShape shape_;
  const ConvPlan& forward_;
  const ConvPlan* data_ = nullptr;
  const ConvPlan* weights_ = nullptr;
};

// Device memory for timing, if there is any to spare.
class Scratch {
 public:
  explicit Scratch(int64_t bytes) {
    if (cudaMalloc(&data_, static_cast<size_t>(std::max<int64_t>(bytes, 1))) != cudaSuccess) {
      data_ = nullptr;
      cudaGetLastError();  // no error of the next call's
      return;
    }
    cudaMemset(data_, 0, static_cast<size_t>(bytes));
  }
  ~Scratch() { cudaFree(data_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void* get() const { return data_; }

 private:
  void* data_ = nullptr;
};

class Timer {
 public:
  explicit Timer(cudaStream_t stream) : stream_(stream) {
    cuda::check(cudaEventCreate(&start_), "cudaEventCreate");
    cuda::check(cudaEventCreate(&end_), "cudaEventCreate");
  }
  ~Timer() {
    cudaEventDestroy(start_);
    cudaEventDestroy(end_);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  void start() { cuda::check(cudaEventRecord(start_, stream_), "cudaEventRecord"); }
  float stop() {
    cuda::check(cudaEventRecord(end_, stream_), "cudaEventRecord");
    cuda::check(cudaEventSynchronize(end_), "cudaEventSynchronize");
    float ms = 0;
    cuda::check(cudaEventElapsedTime(&ms, start_, end_), "cudaEventElapsedTime");
    return ms;
  }

 private:
  const cudaStream_t stream_;
  cudaEvent_t start_ = nullptr, end_ = nullptr;
};

}  // namespace

CudaConvs::CudaConvs(cudaStream_t stream, const DeviceTuning& tuning)
    : stream_(stream), tuning_(tuning) {
  check_cudnn(cudnnCreate(&handle_), "cudnnCreate");
  check_cudnn(cudnnSetStream(handle_, stream), "cudnnSetStream");
}

CudaConvs::~CudaConvs() {
  plans_.clear();
  cudnnDestroy(handle_);
}

std::unique_ptr<DeviceConv> CudaConvs::make(const ConvShape& shape, bool backward) {
  return std::make_unique<CudaConv>(*this, shape, backward);
}

const ConvPlan& CudaConvs::plan(const ConvShape& shape, ConvPass pass) {
  for (const Entry& entry : plans_) {
    if (entry.shape == shape && entry.pass == pass) return *entry.plan;
  }
  constexpr int kCandidates = 8;
  ConvPlanWish wish;
  wish.shape = shape;
  wish.pass = pass;
  wish.deterministic = tuning_.deterministic;
  wish.workspace_limit = tuning_.workspace_limit;
  wish.most = tuning_.autotune ? kCandidates : 1;
  std::vector<ConvPlan> plans = find_conv_plans(CudnnTarget(handle_), wish);
  const size_t best = fastest(shape, pass, plans);
  plans_.push_back({shape, pass, std::make_unique<ConvPlan>(std::move(plans[best]))});
  return *plans_.back().plan;
}

void CudaConvs::execute(const ConvPlan& plan, const void* a, const void* b, void* out,
                        void* workspace) {
  execute_conv_plan(handle_, plan, a, b, out, workspace);
}

float CudaConvs::time_of(const ConvPlan& plan, void* a, void* b, void* out, void* workspace) {
  constexpr int kRuns = 4;
  try {
    execute(plan, a, b, out, workspace);  // loads what it needs
    Timer timer(stream_);
    float best = std::numeric_limits<float>::infinity();
    for (int i = 0; i < kRuns; ++i) {
      timer.start();
      execute(plan, a, b, out, workspace);
      best = std::min(best, timer.stop());
    }
    return best;
  } catch (const std::runtime_error&) {
    return std::numeric_limits<float>::infinity();  // promised more than it keeps
  }
}

size_t CudaConvs::fastest(const ConvShape& s, ConvPass pass, const std::vector<ConvPlan>& plans) {
  if (plans.size() < 2) return 0;
  const int64_t number = s.type == Precision::bf16 ? 2 : 4;
  const int64_t x = number * s.rows * s.in_height * s.in_width * s.in_channels;
  const int64_t y = number * s.rows * s.out_height * s.out_width * s.out_channels;
  const int64_t w = number * s.out_channels * s.kernel * s.kernel * s.in_channels;
  const bool forward = pass == ConvPass::forward, data = pass == ConvPass::backward_data;
  int64_t workspace = 0;
  for (const ConvPlan& plan : plans) workspace = std::max(workspace, plan.workspace_bytes);
  const Scratch a(data ? y : x), b(forward || data ? w : y), out(forward ? y : data ? x : w);
  const Scratch work(workspace);
  for (const Scratch* scratch : {&a, &b, &out, &work}) {
    if (scratch->get() == nullptr) return 0;  // no room to try: the heuristics' choice
  }
  size_t best = 0;
  float best_ms = std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < plans.size(); ++i) {
    const float ms = time_of(plans[i], a.get(), b.get(), out.get(), work.get());
    if (ms < best_ms) {
      best = i;
      best_ms = ms;
    }
  }
  return best;
}

}  // namespace stoker
