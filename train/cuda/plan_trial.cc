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

namespace {

constexpr int64_t kTicketBytes = (cuda::kTickets * int64_t{sizeof(unsigned)} + 255) / 256 * 256;

}  // namespace

std::vector<int64_t> operand_bytes(const ConvShape& s, ConvPass pass) {
  const int64_t number = s.type == Precision::bf16 ? 2 : 4;
  const int64_t x = number * s.rows * s.in_height * s.in_width * s.in_channels;
  const int64_t y = number * s.rows * s.out_height * s.out_width * s.out_channels;
  const int64_t w = number * s.out_channels * s.kernel.height * s.kernel.width * s.in_channels;
  const bool forward = pass == ConvPass::forward, data = pass == ConvPass::backward_data;
  return {data ? y : x, forward || data ? w : y, forward ? y : data ? x : w};
}

int64_t sum_pass_scratch_bytes(const ConvShape& s) {
  return kTicketBytes + channel_scratch_bytes(s.out_channels) +
         s.out_channels * static_cast<int64_t>(sizeof(float));
}

void queue_sum_pass(cudaStream_t stream, const ConvShape& s, const void* y, std::byte* scratch) {
  std::byte* const partial = scratch + kTicketBytes;
  std::byte* const sums = partial + channel_scratch_bytes(s.out_channels);
  cuda::sum_pixels(stream, static_cast<int64_t>(s.rows) * s.out_height * s.out_width,
                   s.out_channels, s.type, y, reinterpret_cast<float*>(sums), partial,
                   reinterpret_cast<unsigned*>(scratch));
}

float sum_pass_ms(cudaStream_t stream, const ConvShape& s) {
  const PlanTrial memory(stream,
                         {operand_bytes(s, ConvPass::forward)[2], sum_pass_scratch_bytes(s)});
  if (!memory.has_room()) return 0;
  return trial_ms(
      stream, [&] { queue_sum_pass(stream, s, memory.at(0), memory.at(1)); },
      std::numeric_limits<float>::infinity());
}

}  // namespace stoker
