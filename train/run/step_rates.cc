// The functions of recipe.h that depend on the step.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "train/model/recipe.h"

namespace stoker {
namespace {

bool is_bias(ParameterKind kind) {
  return kind == ParameterKind::conv_bias || kind == ParameterKind::norm_bias ||
         kind == ParameterKind::linear_bias;
}

}  // namespace

void set_rates(const Recipe& recipe, const std::vector<TensorInfo>& parameters, int64_t step,
               int64_t total_steps, int64_t steps_per_epoch, StepRates& rates) {
  const OptimizerSpec& optimizer = recipe.optimizer;
  const int batch = rates.update_batch > 0 ? rates.update_batch : recipe.batch;
  rates.learning_rate = optimizer.effective_learning_rate(batch) *
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
    const bool of_norm = norm_weight || is_bias(tensor.kind);
    const bool lars = optimizer.kind == OptimizerKind::lars;
    const bool decays = !of_norm || (optimizer.decay_norms && !lars);

    const double own = optimizer.rate_factor(tensor.name);

    TensorUpdate& update = rates.tensors[i];
    update.learning_rate = static_cast<float>(rates.learning_rate * factor * own);
    update.adapted = lars && !of_norm;
    update.weight_decay = decays ? static_cast<float>(optimizer.weight_decay / factor) : 0;
    update.frozen = own == 0 || (norm_weight && !optimizer.train_norm_weights) ||
                    (whitens && (!is_bias(tensor.kind) || step >= whiten_bias_steps));
  }
  UpdateArgs& args = rates.args;
  args.tensors = rates.tensors;
  args.kind = optimizer.kind;
  args.momentum = static_cast<float>(optimizer.momentum);
  args.nesterov = optimizer.nesterov;
  args.decoupled = optimizer.decoupled;
  args.beta1 = optimizer.beta1;
  args.beta2 = optimizer.beta2;
  args.epsilon = static_cast<float>(optimizer.epsilon);
  args.trust = static_cast<float>(optimizer.trust);
  args.clip_norm = static_cast<float>(optimizer.clip_norm);
  args.count = step + 1 + rates.more_updates;
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
