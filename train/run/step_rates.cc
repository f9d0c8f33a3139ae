// The functions of recipe.h that depend on the step.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "pipeline/random_key.h"
#include "train/model/recipe.h"

namespace stoker {
namespace {

// Makes the draws of a step differ from those of samples, which use the plain seed.
constexpr uint64_t kMixSeed = 0x6d69782d73746570;

bool is_bias(ParameterKind kind) {
  return kind == ParameterKind::conv_bias || kind == ParameterKind::norm_bias ||
         kind == ParameterKind::linear_bias;
}

// Numbered draws of one step.
class Draws {
 public:
  Draws(uint64_t seed, int64_t step) : key_(seed ^ kMixSeed, 0, step) {}
  double uniform() { return key_.uniform(next_++); }
  int64_t below(int64_t bound) { return key_.below(next_++, bound); }

  // Marsaglia and Tsang 2000; for alpha < 1 with their boost.
  double gamma(double alpha) {
    if (alpha < 1) return gamma(alpha + 1) * std::pow(1 - uniform(), 1 / alpha);
    const double d = alpha - 1.0 / 3, c = 1 / std::sqrt(9 * d);
    for (;;) {
      const double x = key_.normal(next_++);
      const double v = std::pow(1 + c * x, 3);
      if (v <= 0) continue;
      if (std::log(1 - uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
    }
  }
  double beta(double alpha) {
    const double a = gamma(alpha), b = gamma(alpha);
    // For a tiny alpha both underflow, and the distribution is a fair coin.
    return a + b > 0 ? a / (a + b) : static_cast<double>(uniform() < 0.5);
  }

 private:
  RandomKey key_;
  uint32_t next_ = 0;
};

// Yun et al. 2019: a box of (1 - lambda) of the area, clipped at the image's edge.
Mix cutmix(Draws& draws, double lambda, Size input) {
  const double half = 0.5 * std::sqrt(1 - lambda);
  const int half_width = static_cast<int>(half * input.width);
  const int half_height = static_cast<int>(half * input.height);
  const int x = static_cast<int>(draws.below(input.width));
  const int y = static_cast<int>(draws.below(input.height));
  const int left = std::max(x - half_width, 0), right = std::min(x + half_width, input.width);
  const int top = std::max(y - half_height, 0), bottom = std::min(y + half_height, input.height);
  Mix mix;
  mix.kind = Mix::Kind::cutmix;
  mix.box = {left, top, right - left, bottom - top};
  const double area = static_cast<double>(mix.box.width) * mix.box.height;
  mix.lambda = static_cast<float>(1 - area / (static_cast<double>(input.width) * input.height));
  return mix;
}

}  // namespace

void set_rates(const Recipe& recipe, const std::vector<TensorInfo>& parameters, int64_t step,
               int64_t total_steps, int64_t steps_per_epoch, StepRates& rates) {
  const OptimizerSpec& optimizer = recipe.optimizer;
  rates.learning_rate = optimizer.effective_learning_rate(recipe.batch) *
                        schedule_factor(recipe.schedule, step, total_steps, steps_per_epoch);
  const auto whiten_bias_steps = static_cast<int64_t>(
      std::llround(recipe.whiten_bias_epochs * static_cast<double>(steps_per_epoch)));
  rates.tensors.resize(parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const TensorInfo& tensor = parameters[i];
    const bool norm_weight = tensor.kind == ParameterKind::norm_weight;
    const bool norm_bias = tensor.kind == ParameterKind::norm_bias;
    const bool whitens = recipe.whitening && tensor.node == parameters[0].node;
    const double factor = norm_bias ? optimizer.norm_bias_factor : 1;
    const bool decays = optimizer.decay_norms || !(norm_weight || is_bias(tensor.kind));

    TensorUpdate& update = rates.tensors[i];
    update.learning_rate = static_cast<float>(rates.learning_rate * factor);
    update.weight_decay = decays ? static_cast<float>(optimizer.weight_decay / factor) : 0;
    update.frozen = (norm_weight && !optimizer.train_norm_weights) ||
                    (whitens && (!is_bias(tensor.kind) || step >= whiten_bias_steps));
  }
  rates.args = {rates.tensors, static_cast<float>(optimizer.momentum), optimizer.nesterov,
                optimizer.decoupled};
}

float average_decay(const AverageSpec& spec, int64_t steps_done, int64_t total_steps) {
  if (spec.kind == AverageKind::none || steps_done % spec.every != 0) return -1;
  double decay = std::pow(spec.decay, spec.every);
  if (spec.kind == AverageKind::ema) {
    const auto blends = static_cast<double>(steps_done / spec.every);
    decay = std::min(decay, (1 + blends) / (10 + blends));
  }
  const double share = static_cast<double>(steps_done) / static_cast<double>(total_steps);
  return static_cast<float>(decay * std::pow(share, spec.ramp));
}

Mix draw_mix(const MixSpec& spec, Size input, uint64_t seed, int64_t step) {
  if (spec.mixup_alpha <= 0 && spec.cutmix_alpha <= 0) return {};
  Draws draws(seed, step);
  if (draws.uniform() >= spec.probability) return {};
  const double coin = draws.uniform();
  const bool cut = spec.mixup_alpha <= 0 || (spec.cutmix_alpha > 0 && coin < 0.5);
  const double lambda = draws.beta(cut ? spec.cutmix_alpha : spec.mixup_alpha);
  if (cut) return cutmix(draws, lambda, input);
  Mix mix;
  mix.kind = Mix::Kind::mixup;
  mix.lambda = static_cast<float>(lambda);
  return mix;
}

std::vector<WeightedView> eval_views(int count) {
  const View plain, mirrored{true, 0, 0};
  if (count == 1) return {{plain, 1.0f}};
  if (count == 2) return {{plain, 0.5f}, {mirrored, 0.5f}};
  if (count == 6) {
    return {{plain, 0.25f},           {mirrored, 0.25f},       {{false, -1, -1}, 0.125f},
            {{true, -1, -1}, 0.125f}, {{false, 1, 1}, 0.125f}, {{true, 1, 1}, 0.125f}};
  }
  throw std::invalid_argument("views: " + std::to_string(count) + " is none of 1, 2 and 6");
}

}  // namespace stoker
