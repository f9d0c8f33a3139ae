// The arithmetic of an update, on one element, one channel or one tensor: the same code for all
// engines, and for nvcc. UpdateArgs (train/engine/engine.h) has the formulas. Pure; any thread.
#pragma once

#include <cmath>

#include "train/engine/engine.h"
#include "train/graph/gradient_layout.h"

#if defined(__CUDACC__)
#define STOKER_HOST_DEVICE __host__ __device__
#else
#define STOKER_HOST_DEVICE
#endif

namespace stoker {

// Factors of a tensor's gradients in an update: the first before the weight decay is
// added, the second, LARS's trust ratio, after it.
struct TensorScale {
  float gradient = 0, trust = 1;
};

// Flat buffers that an update changes, in the engine's memory.
struct UpdatedStates {
  float* weights = nullptr;
  float* momenta = nullptr;
  float* second_moments = nullptr;  // Adam, else null
  void* copies = nullptr;           // device engines: the weights in bf16, or null
};

struct TensorRate {
  float learning_rate = 0, weight_decay = 0;
  int frozen = 0, adapted = 0;
  float adam_rate = 0;  // learning_rate / bias correction of the first moment
};
struct UpdateRates {
  float momentum = 0, trust = 0, clip_norm = 0;
  int nesterov = 0, decoupled = 0;
  // Adam: 1 - beta1, beta2, 1 - beta2, 1 / root of the second moment's bias correction.
  float rest1 = 0, beta2 = 0, rest2 = 0, correction = 0, epsilon = 0;
};

inline UpdateRates update_rates(const UpdateArgs& args) {
  UpdateRates rates;
  rates.momentum = args.momentum;
  rates.trust = args.trust;
  rates.clip_norm = args.clip_norm;
  rates.nesterov = args.nesterov ? 1 : 0;
  rates.decoupled = args.decoupled ? 1 : 0;
  if (!has_second_moments(args.kind)) return rates;
  rates.decoupled = args.kind == OptimizerKind::adamw ? 1 : 0;
  rates.rest1 = static_cast<float>(1 - args.beta1);
  rates.beta2 = static_cast<float>(args.beta2);
  rates.rest2 = static_cast<float>(1 - args.beta2);
  const auto count = static_cast<double>(args.count);
  rates.correction = static_cast<float>(1 / std::sqrt(1 - std::pow(args.beta2, count)));
  rates.epsilon = args.epsilon;
  return rates;
}

inline TensorRate tensor_rate(const UpdateArgs& args, const TensorUpdate& tensor) {
  TensorRate rate{tensor.learning_rate, tensor.weight_decay, tensor.frozen ? 1 : 0,
                  tensor.adapted && args.kind == OptimizerKind::lars ? 1 : 0, 0};
  if (has_second_moments(args.kind)) {
    const double correction = 1 - std::pow(args.beta1, static_cast<double>(args.count));
    rate.adam_rate = static_cast<float>(tensor.learning_rate / correction);
  }
  return rate;
}

// Sums of squares of a chunk or of a tensor.
struct TensorSquares {
  double gradient = 0, weight = 0;
};

// Computed once per update.
struct FiniteCheck {
  float gradient_scale = 0;
  int apply = 0;  // 0: something is not finite, or no row counts
  int finite = 0;
  float metrics[kStepMetrics] = {};
};

}  // namespace stoker

namespace stoker::device {

// The weights' factor under decoupled decay, and the decay that is added to the gradient.
STOKER_HOST_DEVICE inline float kept_weight(const UpdateRates& rates, const TensorRate& rate) {
  return rates.decoupled ? 1.0f - rate.learning_rate * rate.weight_decay : 1.0f;
}
STOKER_HOST_DEVICE inline float coupled_decay(const UpdateRates& rates, const TensorRate& rate) {
  return rates.decoupled ? 0.0f : rate.weight_decay;
}

STOKER_HOST_DEVICE inline void sgd(const UpdateRates& rates, const TensorRate& rate,
                                   const TensorScale& scale, float gradient, float* weight,
                                   float* momentum) {
  const float decay = coupled_decay(rates, rate);
  const float g = scale.trust * (gradient * scale.gradient + decay * *weight);
  const float v = rates.momentum * *momentum + g;
  *momentum = v;
  *weight = *weight * kept_weight(rates, rate) -
            rate.learning_rate * (rates.nesterov ? g + rates.momentum * v : v);
}

STOKER_HOST_DEVICE inline void adam(const UpdateRates& rates, const TensorRate& rate,
                                    const TensorScale& scale, float gradient, float* weight,
                                    float* first, float* second) {
  const float g = gradient * scale.gradient + coupled_decay(rates, rate) * *weight;
  const float m = *first + rates.rest1 * (g - *first);
  const float v = rates.beta2 * *second + rates.rest2 * g * g;
  *first = m;
  *second = v;
  *weight = *weight * kept_weight(rates, rate) -
            rate.adam_rate * m / (sqrtf(v) * rates.correction + rates.epsilon);
}

// `squares`: of all gradients of the update, before `gradient_scale`.
STOKER_HOST_DEVICE inline float clipped_scale(const UpdateRates& rates, float gradient_scale,
                                              double squares) {
  if (rates.clip_norm <= 0) return gradient_scale;
  const double scale = gradient_scale;
  const double factor = rates.clip_norm / (sqrt(squares * scale * scale) + 1e-6);
  return gradient_scale * static_cast<float>(factor < 1 ? factor : 1.0);
}

// `gradient_scale`: after clipping.
STOKER_HOST_DEVICE inline TensorScale tensor_scale(const UpdateRates& rates, const TensorRate& rate,
                                                   float gradient_scale,
                                                   const TensorSquares& squares) {
  const double gradient = sqrt(squares.gradient) * gradient_scale, weight = sqrt(squares.weight);
  if (!rate.adapted || gradient <= 0 || weight <= 0) return {gradient_scale, 1.0f};
  return {gradient_scale,
          static_cast<float>(rates.trust * weight / (gradient + rate.weight_decay * weight))};
}

STOKER_HOST_DEVICE inline void decide(float nominal_rows, bool numbers_finite, const float* metrics,
                                      FiniteCheck* check) {
  for (int i = 0; i < kStepMetrics; ++i) check->metrics[i] = metrics[i];
  const float weight = metrics[static_cast<int>(StepMetric::weight)];
  const bool finite = numbers_finite && metrics[static_cast<int>(StepMetric::finite)] ==
                                            metrics[static_cast<int>(StepMetric::micro_batches)];
  check->finite = finite ? 1 : 0;
  check->apply = finite && weight > 0 ? 1 : 0;
  check->gradient_scale =
      check->apply ? static_cast<float>(static_cast<double>(nominal_rows) / weight) : 0.0f;
}

// Uses the averages of (mean - running mean) and (variance + its square) over all micro-batches. As
// in PyTorch, the running variance is the unbiased one.
STOKER_HOST_DEVICE inline void move_statistics(const StatisticChannel& c, const float* moments,
                                               double micro_batches, float* statistics) {
  const double count = micro_batches * c.numbers;
  const double unbiased = count > 1 ? count / (count - 1) : 1.0;
  const double distance = moments[c.mean] / micro_batches;
  const double square = moments[c.variance] / micro_batches;
  const double rest = square - distance * distance;
  const double variance = (rest > 0 ? rest : 0.0) * unbiased;
  const double share = c.momentum;
  statistics[c.mean] = static_cast<float>(statistics[c.mean] + share * distance);
  statistics[c.variance] =
      static_cast<float>((1 - share) * statistics[c.variance] + share * variance);
}

STOKER_HOST_DEVICE inline void blend(float decay, bool pull, float* average, float* current) {
  *average = decay * *average + (1.0f - decay) * *current;
  if (pull) *current = *average;
}

}  // namespace stoker::device
