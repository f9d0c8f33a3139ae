#include "train/cpu/update.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <functional>

namespace stoker {
namespace {

// Small enough that workers finish at the same time, large enough that the counter costs nothing.
constexpr int64_t kChunk = 1 << 16;

struct SgdArgs {
  float gradient_scale, trust, learning_rate, weight_decay, momentum;
  float keep;  // what decoupled decay leaves of the weights
  bool nesterov;
};

void sgd(const SgdArgs& a, const float* gradient, float* weight, float* momentum, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float g = a.trust * (gradient[i] * a.gradient_scale + a.weight_decay * weight[i]);
    const float v = a.momentum * momentum[i] + g;
    momentum[i] = v;
    weight[i] = weight[i] * a.keep - a.learning_rate * (a.nesterov ? g + a.momentum * v : v);
  }
}

struct AdamArgs {
  float gradient_scale, weight_decay, keep;
  float rest1, beta2, rest2;  // rest: 1 - beta
  float rate;                 // learning rate / bias correction of the first moment
  float correction;           // 1 / sqrt(bias correction of the second moment)
  float epsilon;
};

void adam(const AdamArgs& a, const float* gradient, float* weight, float* first, float* second,
          int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float g = gradient[i] * a.gradient_scale + a.weight_decay * weight[i];
    const float m = first[i] + a.rest1 * (g - first[i]);
    const float v = a.beta2 * second[i] + a.rest2 * g * g;
    first[i] = m;
    second[i] = v;
    weight[i] = weight[i] * a.keep - a.rate * m / (std::sqrt(v) * a.correction + a.epsilon);
  }
}

AdamArgs adam_args(const UpdateArgs& args, const TensorUpdate& tensor, float gradient_scale) {
  const bool decoupled = args.kind == OptimizerKind::adamw;
  const auto count = static_cast<double>(args.count);
  const double correction1 = 1 - std::pow(args.beta1, count);
  const double correction2 = 1 - std::pow(args.beta2, count);
  return {.gradient_scale = gradient_scale,
          .weight_decay = decoupled ? 0.0f : tensor.weight_decay,
          .keep = decoupled ? 1.0f - tensor.learning_rate * tensor.weight_decay : 1.0f,
          .rest1 = static_cast<float>(1 - args.beta1),
          .beta2 = static_cast<float>(args.beta2),
          .rest2 = static_cast<float>(1 - args.beta2),
          .rate = static_cast<float>(tensor.learning_rate / correction1),
          .correction = static_cast<float>(1 / std::sqrt(correction2)),
          .epsilon = args.epsilon};
}

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

// The factor that clipping leaves of gradients whose squares sum up to `squares`.
float clip_factor(double squares, float clip_norm) {
  if (clip_norm <= 0) return 1;
  return static_cast<float>(std::min(1.0, clip_norm / (std::sqrt(squares) + 1e-6)));
}

float trust_ratio(float trust, float weight_decay, double weight_norm, double gradient_norm) {
  if (weight_norm <= 0 || gradient_norm <= 0) return 1;
  return static_cast<float>(trust * weight_norm / (gradient_norm + weight_decay * weight_norm));
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
void share_out(size_t count, CpuWorkers& workers, const Job& job) {
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
  share_out(chunks.size(), workers, [&](size_t i) {
    if (!all_finite(reduced + chunks[i].offset, chunks[i].count)) finite = false;
  });
  const int64_t rest = layout.numbers() - layout.moments();
  return finite && all_finite(reduced + layout.moments(), rest) &&
         step_metric(layout, reduced, StepMetric::finite) ==
             step_metric(layout, reduced, StepMetric::micro_batches);
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

std::vector<TensorScale> tensor_scales(const UpdateArgs& args, float gradient_scale,
                                       const GradientLayout& layout, const float* reduced,
                                       const float* weights, CpuWorkers& workers) {
  std::vector<TensorScale> scales(layout.tensors().size(), {gradient_scale, 1.0f});
  const bool lars = args.kind == OptimizerKind::lars;
  if (!lars && args.clip_norm <= 0) return scales;
  struct Squares {
    double gradient = 0, weight = 0;
  };
  const std::vector<TensorChunk> chunks = layout.chunks(kChunk);
  std::vector<Squares> of_chunk(chunks.size());
  share_out(chunks.size(), workers, [&](size_t i) {
    const TensorUpdate& u = args.tensors[chunks[i].tensor];
    if (u.frozen) return;
    of_chunk[i].gradient = sum_of_squares(reduced + chunks[i].offset, chunks[i].count);
    if (!u.adapted) return;
    of_chunk[i].weight = sum_of_squares(weights + chunks[i].offset, chunks[i].count);
  });
  std::vector<Squares> of_tensor(scales.size());
  for (size_t i = 0; i < chunks.size(); ++i) {
    of_tensor[chunks[i].tensor].gradient += of_chunk[i].gradient;
    of_tensor[chunks[i].tensor].weight += of_chunk[i].weight;
  }
  double all = 0;
  for (const Squares& squares : of_tensor) all += squares.gradient;
  const double scale = gradient_scale;
  const float clipped = gradient_scale * clip_factor(all * scale * scale, args.clip_norm);
  for (size_t t = 0; t < scales.size(); ++t) {
    scales[t].gradient = clipped;
    if (!lars || !args.tensors[t].adapted) continue;
    scales[t].trust =
        trust_ratio(args.trust, args.tensors[t].weight_decay, std::sqrt(of_tensor[t].weight),
                    std::sqrt(of_tensor[t].gradient) * clipped);
  }
  return scales;
}

void update_tensors(const UpdateArgs& args, std::span<const TensorScale> scales,
                    const GradientLayout& layout, const float* reduced, const UpdatedStates& states,
                    CpuWorkers& workers) {
  const std::vector<TensorChunk> chunks = layout.chunks(kChunk);
  share_out(chunks.size(), workers, [&](size_t i) {
    const TensorUpdate& u = args.tensors[chunks[i].tensor];
    if (u.frozen) return;
    const TensorScale& scale = scales[chunks[i].tensor];
    const int64_t at = chunks[i].offset, count = chunks[i].count;
    if (has_second_moments(args.kind)) {
      adam(adam_args(args, u, scale.gradient), reduced + at, states.weights + at,
           states.momenta + at, states.second_moments + at, count);
      return;
    }
    const SgdArgs sgd_args{
        scale.gradient,  scale.trust,
        u.learning_rate, args.decoupled ? 0.0f : u.weight_decay,
        args.momentum,   args.decoupled ? 1.0f - u.learning_rate * u.weight_decay : 1.0f,
        args.nesterov};
    sgd(sgd_args, reduced + at, states.weights + at, states.momenta + at, count);
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
  share_out(static_cast<size_t>((count + kChunk - 1) / kChunk), workers, [&](size_t i) {
    const int64_t at = static_cast<int64_t>(i) * kChunk;
    blend(decay, pull, average.data() + at, current.data() + at, std::min(kChunk, count - at));
  });
}

}  // namespace stoker
