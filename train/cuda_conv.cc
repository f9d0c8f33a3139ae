#include "train/cuda_conv.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <utility>

#include "train/cuda_kernels.h"

namespace stoker {
namespace {

// Of how many plans the fastest is taken. They are timed once and kept.
constexpr int kCandidates = 20;

// Device memory for timing, if there is any to spare, filled with zeros on the stream.
class Scratch {
 public:
  Scratch(cudaStream_t stream, int64_t bytes) {
    if (cudaMalloc(&data_, static_cast<size_t>(bytes)) != cudaSuccess) {
      data_ = nullptr;
      cudaGetLastError();  // no error of the next call's
      return;
    }
    cudaMemsetAsync(data_, 0, static_cast<size_t>(bytes), stream);
  }
  ~Scratch() { cudaFree(data_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::byte* get() const { return static_cast<std::byte*>(data_); }

 private:
  void* data_ = nullptr;
};

// The operands of one pass of a convolution, and one workspace for all plans, in a single piece of
// memory. It is given back before the next pass is planned: the engine's own memory is measured and
// allocated right after the last one.
class Trial {
 public:
  Trial(cudaStream_t stream, const ConvShape& s, ConvPass pass, int64_t workspace)
      : Trial(stream, sizes_of(s, pass, workspace)) {}

  bool has_room() const { return memory_.get() != nullptr; }
  CudnnDescriptor operands() const {
    std::byte* a = memory_.get();
    std::byte* b = a + sizes_[0];
    std::byte* out = b + sizes_[1];
    return bind_conv(a, b, out, out + sizes_[2]);
  }

 private:
  using Sizes = std::array<int64_t, 4>;
  Trial(cudaStream_t stream, const Sizes& sizes)
      : sizes_(sizes), memory_(stream, sizes[0] + sizes[1] + sizes[2] + sizes[3]) {}

  static Sizes sizes_of(const ConvShape& s, ConvPass pass, int64_t workspace) {
    const int64_t number = s.type == Precision::bf16 ? 2 : 4;
    const int64_t x = number * s.rows * s.in_height * s.in_width * s.in_channels;
    const int64_t y = number * s.rows * s.out_height * s.out_width * s.out_channels;
    const int64_t w = number * s.out_channels * s.kernel * s.kernel * s.in_channels;
    const bool forward = pass == ConvPass::forward, data = pass == ConvPass::backward_data;
    Sizes sizes{data ? y : x, forward || data ? w : y, forward ? y : data ? x : w, workspace};
    constexpr int64_t kAlignment = 256;  // as the engine's own buffers
    for (int64_t& bytes : sizes) bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return sizes;
  }

  const Sizes sizes_;
  const Scratch memory_;
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

// Milliseconds of one run: the best of some pairs of events with several runs between them, since
// one short kernel between two events would measure how fast the host queues.
float time_of(cudaStream_t stream, const std::function<void()>& run, float best) {
  constexpr int kPairs = 3, kFewestRuns = 2, kMostRuns = 10;
  constexpr float kPairMs = 1;                         // about, between two events
  constexpr float kHopeless = 2, kQueueingMs = 0.02f;  // of a run alone, beside the best
  try {
    run();  // loads what it needs
    Timer timer(stream);
    const auto of_runs = [&](int runs) {
      timer.start();
      for (int i = 0; i < runs; ++i) run();
      return timer.stop() / static_cast<float>(runs);
    };
    const float alone = of_runs(1);
    if (alone > kHopeless * best + kQueueingMs) return alone;
    const int runs = std::clamp(static_cast<int>(kPairMs / std::max(alone, kPairMs / kMostRuns)),
                                kFewestRuns, kMostRuns);
    float fastest = std::numeric_limits<float>::infinity();
    for (int i = 0; i < kPairs; ++i) fastest = std::min(fastest, of_runs(runs));
    return fastest;
  } catch (const std::runtime_error&) {
    return std::numeric_limits<float>::infinity();  // promised more than it keeps
  }
}

// What a plan's speed depends on besides the convolution. MIG slices and the variants of one name
// differ in multiprocessors and memory.
std::string machine_name() {
  int device = 0;
  cuda::check(cudaGetDevice(&device), "cudaGetDevice");
  cudaDeviceProp gpu;
  cuda::check(cudaGetDeviceProperties(&gpu, device), "cudaGetDeviceProperties");
  return std::string(gpu.name) + " " + std::to_string(gpu.major) + "." + std::to_string(gpu.minor) +
         ", " + std::to_string(gpu.multiProcessorCount) + " multiprocessors, " +
         std::to_string(gpu.totalGlobalMem) + " bytes, cuDNN " + std::to_string(cudnnGetVersion());
}

void say(const std::string& line) { std::fprintf(stderr, "stoker: %s\n", line.c_str()); }

}  // namespace

CudaConvs::CudaConvs(cudaStream_t stream, const DeviceTuning& tuning)
    : stream_(stream),
      tuning_(tuning),
      machine_(machine_name()),
      choices_(tuning.autotune ? tuning.plan_cache : "", say) {
  check_cudnn(cudnnCreate(&handle_), "cudnnCreate");
  check_cudnn(cudnnSetStream(handle_, stream), "cudnnSetStream");
}

CudaConvs::~CudaConvs() {
  plans_.clear();
  cudnnDestroy(handle_);
}

std::unique_ptr<DeviceConv> CudaConvs::make(const ConvShape& shape, bool backward) {
  return make_lazy_conv(*this, shape, backward);
}

const CudnnPlan& CudaConvs::plan(const ConvShape& shape, ConvPass pass) {
  for (const Entry& entry : plans_) {
    if (entry.shape == shape && entry.pass == pass) return *entry.plan;
  }
  const ConvPlanWish wish{shape, pass, tuning_.deterministic, tuning_.workspace_limit};
  plans_.push_back({shape, pass, std::make_unique<CudnnPlan>(choose(wish))});
  return *plans_.back().plan;
}

CudnnPlan CudaConvs::choose(const ConvPlanWish& wish) {
  const CudnnTarget target(handle_);
  if (!tuning_.autotune) return std::move(list_conv_plans(target, wish, 1)[0]);
  std::optional<CudnnPlan> restored;
  std::vector<CudnnPlan> plans;
  std::optional<Trial> trial;
  PlanSearch search;
  search.restore = [&](const std::string& name) {
    restored = find_conv_plan(target, wish, name);
    return restored.has_value();
  };
  search.candidates = [&] {
    plans = list_conv_plans(target, wish, kCandidates);
    int64_t workspace = 0;
    std::vector<std::string> names;
    for (const CudnnPlan& plan : plans) {
      workspace = std::max(workspace, plan.workspace_bytes);
      names.push_back(plan.name);
    }
    trial.emplace(stream_, wish.shape, wish.pass, workspace);
    return names;
  };
  search.time = [&](size_t index, float best) {
    // Without room to try it stays the heuristics' choice.
    if (!trial->has_room()) return std::numeric_limits<float>::infinity();
    const CudnnDescriptor operands = trial->operands();
    return time_of(
        stream_, [&] { execute_plan(handle_, plans[index], operands); }, best);
  };
  const std::string question = machine_ + "; " + describe(wish.shape, wish.pass) + "; " +
                               (wish.deterministic ? "deterministic" : "in any order") + ", " +
                               std::to_string(wish.workspace_limit) + " bytes of workspace, of " +
                               std::to_string(kCandidates) + " plans";
  const std::optional<size_t> chosen = choices_.choose(question, search);
  return chosen ? std::move(plans[*chosen]) : std::move(*restored);
}

void CudaConvs::execute(const CudnnPlan& plan, const CudnnDescriptor& operands) {
  choices_.save();  // all is planned before the first step
  execute_plan(handle_, plan, operands);
}

}  // namespace stoker
