#include "train/cpu/update.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <functional>

namespace stoker {
namespace {

// Small enough that workers finish at the same time, large enough that the counter costs nothing.
constexpr int64_t kChunk = 1 << 16;

struct SgdArgs {
  float gradient_scale, learning_rate, weight_decay, momentum, keep;  // keep: decoupled decay
  bool nesterov;
};

// Computes torch.optim.SGD's update, after the decoupled decay.
void sgd(const SgdArgs& a, const float* gradient, float* weight, float* momentum, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float g = gradient[i] * a.gradient_scale + a.weight_decay * weight[i];
    const float v = a.momentum * momentum[i] + g;
    momentum[i] = v;
    weight[i] = weight[i] * a.keep - a.learning_rate * (a.nesterov ? g + a.momentum * v : v);
  }
}

bool all_finite(const float* values, int64_t count) {
  uint32_t highest = 0;  // NaN and infinity have the largest exponent
  for (int64_t i = 0; i < count; ++i) {
    highest = std::max(highest, std::bit_cast<uint32_t>(values[i]) & 0x7fffffffu);
  }
  return highest < 0x7f800000u;
}

void blend(float decay, bool pull, float* average, float* current, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    average[i] = decay * average[i] + (1.0f - decay) * current[i];
    if (pull) current[i] = average[i];
  }
}

template <typename Job>  // job(index), each index below `count` once
void share(size_t count, CpuWorkers& workers, const Job& job) {
  std::atomic<size_t> next{0};
  workers.run([&](int) {
    for (size_t i = next++; i < count; i = next++) job(i);
  });
}

}  // namespace

float step_metric(const GradientLayout& layout, const float* reduced, StepMetric metric) {
  return reduced[layout.metrics() + static_cast<int>(metric)];
}

bool all_finite(const GradientLayout& layout, const float* reduced, CpuWorkers& workers) {
  const std::vector<TensorChunk> chunks = layout.chunks(kChunk);
  std::atomic<bool> finite{true};
  share(chunks.size(), workers, [&](size_t i) {
    if (!all_finite(reduced + chunks[i].offset, chunks[i].count)) finite = false;
  });
  const int64_t rest = layout.numbers() - layout.moments();
  return finite && all_finite(reduced + layout.moments(), rest) &&
         step_metric(layout, reduced, StepMetric::finite) ==
             step_metric(layout, reduced, StepMetric::micro_batches);
}

void update_tensors(const UpdateArgs& args, float gradient_scale, const GradientLayout& layout,
                    const float* reduced, float* weights, float* momenta, CpuWorkers& workers) {
  const std::vector<TensorChunk> chunks = layout.chunks(kChunk);
  share(chunks.size(), workers, [&](size_t i) {
    const TensorUpdate& u = args.tensors[chunks[i].tensor];
    if (u.frozen) return;
    const SgdArgs sgd_args{gradient_scale,
                           u.learning_rate,
                           args.decoupled ? 0.0f : u.weight_decay,
                           args.momentum,
                           args.decoupled ? 1.0f - u.learning_rate * u.weight_decay : 1.0f,
                           args.nesterov};
    const int64_t at = chunks[i].offset;
    sgd(sgd_args, reduced + at, weights + at, momenta + at, chunks[i].count);
  });
}

// Uses the averages of (mean - running mean) and (variance + its square) over all micro-batches:
// see write_moments(). As in PyTorch, the running variance is the unbiased one.
void move_statistics(const GradientLayout& layout, int rows, const float* reduced,
                     float* statistics) {
  const float* moments = reduced + layout.moments();
  const double micro_batches = step_metric(layout, reduced, StepMetric::micro_batches);
  for (const StatisticChannel& channel : layout.statistic_channels(rows)) {
    const double count = micro_batches * channel.numbers;
    const double unbiased = count > 1 ? count / (count - 1) : 1.0;
    const double distance = moments[channel.mean] / micro_batches;
    const double square = moments[channel.variance] / micro_batches;
    const double variance = std::max(0.0, square - distance * distance) * unbiased;
    const double share_of_new = channel.momentum;
    float& mean = statistics[channel.mean];
    float& running = statistics[channel.variance];
    mean = static_cast<float>(mean + share_of_new * distance);
    running = static_cast<float>((1 - share_of_new) * running + share_of_new * variance);
  }
}

void blend(float decay, bool pull, std::span<float> average, std::span<float> current,
           CpuWorkers& workers) {
  const auto count = static_cast<int64_t>(average.size());
  share(static_cast<size_t>((count + kChunk - 1) / kChunk), workers, [&](size_t i) {
    const int64_t at = static_cast<int64_t>(i) * kChunk;
    blend(decay, pull, average.data() + at, current.data() + at, std::min(kChunk, count - at));
  });
}

}  // namespace stoker
