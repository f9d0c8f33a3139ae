#include "train/cuda/plan_trial.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "train/cuda/kernels.h"

namespace stoker {
namespace {

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

PlanTrial::PlanTrial(cudaStream_t stream, const std::vector<int64_t>& sizes) {
  constexpr int64_t kAlignment = 256;  // as for the engine's buffers
  for (const int64_t bytes : sizes) {
    starts_.push_back(starts_.back() + (bytes + kAlignment - 1) / kAlignment * kAlignment);
  }
  const auto all = static_cast<size_t>(starts_.back());
  if (cudaMalloc(&memory_, all) != cudaSuccess) {
    memory_ = nullptr;
    cudaGetLastError();  // so that the next call does not report it
    return;
  }
  cudaMemsetAsync(memory_, 0, all, stream);
}

PlanTrial::~PlanTrial() { cudaFree(memory_); }

float trial_ms(cudaStream_t stream, const std::function<void()>& run, float best) {
  constexpr int kPairs = 3, kFewestRuns = 2, kMaxRuns = 10;
  constexpr float kPairMs = 1;  // approximate time between two events
  // A single run that takes more than kHopeless * best + kQueueingMs is too slow.
  constexpr float kHopeless = 2, kQueueingMs = 0.02f;
  try {
    run();  // loads lazily
    Timer timer(stream);
    const auto of_runs = [&](int runs) {
      timer.start();
      for (int i = 0; i < runs; ++i) run();
      return timer.stop() / static_cast<float>(runs);
    };
    const float alone = of_runs(1);
    if (alone > kHopeless * best + kQueueingMs) return alone;
    const int runs = std::clamp(static_cast<int>(kPairMs / std::max(alone, kPairMs / kMaxRuns)),
                                kFewestRuns, kMaxRuns);
    float fastest = std::numeric_limits<float>::infinity();
    for (int i = 0; i < kPairs; ++i) fastest = std::min(fastest, of_runs(runs));
    return fastest;
  } catch (const std::runtime_error&) {
    return std::numeric_limits<float>::infinity();  // cuDNN listed a plan that does not run
  }
}

}  // namespace stoker
