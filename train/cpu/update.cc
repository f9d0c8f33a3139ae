#include "train/cpu/update.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>

namespace stoker {
namespace {

// Small enough that workers finish at the same time, large enough that the counter costs nothing.
constexpr int64_t kChunk = 1 << 16;

// A fixed number of sums side by side, so that the compiler may use vectors.
double sum_of_squares(const float* values, int64_t count) {
  constexpr int64_t kLanes = 8;
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const double value = values[i + lane];
      lanes[lane] += value * value;
    }
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  for (; i < count; ++i) sum += static_cast<double>(values[i]) * values[i];
  return sum;
}

bool all_finite(const float* values, int64_t count) {
  uint32_t highest = 0;  // NaN and infinity have the largest exponent
  for (int64_t i = 0; i < count; ++i) {
    highest = std::max(highest, std::bit_cast<uint32_t>(values[i]) & 0x7fffffffu);
  }
  return highest < 0x7f800000u;
}

template <typename Job>  // job(index), each index below `count` once
void share_out(size_t count, CpuWorkers& workers, const Job& job) {
  std::atomic<size_t> next{0};
  workers.run([&](int) {
    for (size_t i = next++; i < count; i = next++) job(i);
  });
}

}  // namespace

FiniteCheck check_finite(const GradientLayout& layout, int64_t nominal_rows, const float* reduced,
                         CpuWorkers& workers) {
  const std::vector<TensorChunk> chunks = layout.chunks(kChunk);
  std::atomic<bool> finite{true};
  share_out(chunks.size(), workers, [&](size_t i) {
    if (!all_finite(reduced + chunks[i].offset, chunks[i].count)) finite = false;
  });
  const int64_t rest = layout.numbers() - layout.moments();
  FiniteCheck check;
  device::decide(static_cast<float>(nominal_rows),
                 finite && all_finite(reduced + layout.moments(), rest), reduced + layout.metrics(),
                 &check);
  return check;
}

void add_buffers(std::span<const float* const> buffers, bool first, std::span<float> sum,
                 CpuWorkers& workers) {
  const auto count = static_cast<int64_t>(sum.size());
  share_out(static_cast<size_t>((count + kChunk - 1) / kChunk), workers, [&](size_t i) {
    const int64_t begin = static_cast<int64_t>(i) * kChunk, end = std::min(begin + kChunk, count);
    bool empty = first;
    for (const float* buffer : buffers) {
      if (empty) {
        std::copy(buffer + begin, buffer + end, sum.data() + begin);
      } else {
        for (int64_t k = begin; k < end; ++k) sum[k] += buffer[k];
      }
      empty = false;
    }
  });
}

GradientScales gradient_scales(const UpdateArgs& args, float gradient_scale,
                               const GradientLayout& layout, const float* reduced,
                               const float* weights, CpuWorkers& workers) {
  const std::vector<TensorChunk> chunks = layout.chunks(kChunk);
  std::vector<TensorSquares> of_chunk(chunks.size());
  share_out(chunks.size(), workers, [&](size_t i) {
    const TensorUpdate& u = args.tensors[chunks[i].tensor];
    if (u.frozen) return;
    of_chunk[i].gradient = sum_of_squares(reduced + chunks[i].offset, chunks[i].count);
    if (!u.adapted) return;
    of_chunk[i].weight = sum_of_squares(weights + chunks[i].offset, chunks[i].count);
  });
  std::vector<TensorSquares> of_tensor(layout.tensors().size());
  for (size_t i = 0; i < chunks.size(); ++i) {
    of_tensor[chunks[i].tensor].gradient += of_chunk[i].gradient;
    of_tensor[chunks[i].tensor].weight += of_chunk[i].weight;
  }
  double all = 0;
  for (const TensorSquares& squares : of_tensor) all += squares.gradient;
  GradientScales made;
  made.of_tensors.assign(of_tensor.size(), {gradient_scale, 1.0f});
  made.norm = gradient_scale * std::sqrt(all);
  if (args.kind != OptimizerKind::lars && args.clip_norm <= 0) return made;
  const UpdateRates rates = update_rates(args);
  const float clipped = device::clipped_scale(rates, gradient_scale, all);
  for (size_t t = 0; t < of_tensor.size(); ++t) {
    const TensorRate rate = tensor_rate(args, args.tensors[t]);
    made.of_tensors[t] = device::tensor_scale(rates, rate, clipped, of_tensor[t]);
  }
  return made;
}

void update_tensors(const UpdateArgs& args, std::span<const TensorScale> scales,
                    const GradientLayout& layout, const float* reduced, const UpdatedStates& states,
                    CpuWorkers& workers) {
  const std::vector<TensorChunk> chunks = layout.chunks(kChunk);
  const UpdateRates all = update_rates(args);
  share_out(chunks.size(), workers, [&](size_t i) {
    const TensorUpdate& u = args.tensors[chunks[i].tensor];
    if (u.frozen) return;
    // Values of this job, so that the loops keep them in registers.
    const UpdateRates rates = all;
    const TensorRate rate = tensor_rate(args, u);
    const TensorScale scale = scales[chunks[i].tensor];
    const int64_t at = chunks[i].offset, count = chunks[i].count;
    const float* const gradients = reduced + at;
    float* const weights = states.weights + at;
    float* const momenta = states.momenta + at;
    if (states.second_moments == nullptr) {
      for (int64_t k = 0; k < count; ++k) {
        device::sgd(rates, rate, scale, gradients[k], weights + k, momenta + k);
      }
      return;
    }
    float* const second = states.second_moments + at;
    for (int64_t k = 0; k < count; ++k) {
      device::adam(rates, rate, scale, gradients[k], weights + k, momenta + k, second + k);
    }
  });
}

void move_statistics(const GradientLayout& layout, int rows, const float* reduced,
                     float* statistics) {
  const float micro_batches =
      reduced[layout.metrics() + static_cast<int>(StepMetric::micro_batches)];
  for (const StatisticChannel& channel : layout.statistic_channels(rows)) {
    device::move_statistics(channel, reduced + layout.moments(), micro_batches, statistics);
  }
}

void blend(float decay, bool pull, std::span<float> average, std::span<float> current,
           CpuWorkers& workers) {
  const auto count = static_cast<int64_t>(average.size());
  share_out(static_cast<size_t>((count + kChunk - 1) / kChunk), workers, [&](size_t i) {
    const int64_t at = static_cast<int64_t>(i) * kChunk;
    const int64_t end = std::min(at + kChunk, count);
    float* const averages = average.data();
    float* const currents = current.data();
    for (int64_t k = at; k < end; ++k) device::blend(decay, pull, averages + k, currents + k);
  });
}

}  // namespace stoker
