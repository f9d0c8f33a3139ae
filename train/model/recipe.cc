#include "train/model/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "pipeline/files/invalid_field.h"

namespace stoker {
namespace {

constexpr int kMaxBatch = 1 << 24;  // the Loader's limit for one device

void require_recipe(bool ok, const char* field, double value, const char* rule) {
  if (ok && std::isfinite(value)) return;
  throw InvalidField("recipe", field, fmt::format(" is {:.10g}, but must be {}", value, rule));
}

std::string describe_average(const AverageSpec& spec) {
  const std::string ramp = spec.ramp > 0 ? fmt::format(" x t^{:g}", spec.ramp) : "";
  return fmt::format("{} every {} steps, decay {:g}{}",
                     spec.kind == AverageKind::ema ? "EMA" : "lookahead", spec.every,
                     std::pow(spec.decay, spec.every), ramp);
}

}  // namespace

void Recipe::set_input(Size size) { input = train.output = eval.output = size; }

void Recipe::set_epochs(double value) {
  epochs = value;
  schedule.warmup_epochs = std::min(schedule.warmup_epochs, value / 10);
}

void Recipe::validate() const {
  require_recipe(epochs > 0 && epochs <= 1e6, "epochs", epochs, "in (0, 1e6]");
  require_recipe(batch >= 1 && batch <= kMaxBatch, "batch", batch, "1 to 2^24");
  require_recipe(micro_batch_size >= 1, "micro_batch_size", micro_batch_size, ">= 1");
  require_recipe(input == train.output && input == eval.output, "input (width)", input.width,
                 "the output of both augmentations: use set_input()");
  require_recipe(label_smoothing >= 0 && label_smoothing < 1, "label_smoothing", label_smoothing,
                 "in [0, 1)");
  require_recipe(average.every >= 1, "average.every", average.every, ">= 1");
  require_recipe(average.decay >= 0 && average.decay < 1, "average.decay", average.decay,
                 "in [0, 1)");
  require_recipe(average.ramp >= 0, "average.ramp", average.ramp, ">= 0");
  for (const auto& [field, spec] : {std::pair("train", &train), std::pair("eval", &eval)}) {
    if (spec->views() == 1) continue;
    throw InvalidField("recipe", field,
                       " has " + std::to_string(spec->views()) +
                           " views, but the trainer learns from one row of each sample");
  }
  if (eval.mix.on()) {
    throw InvalidField("recipe", "eval.mix", " is on, but only rows for training are mixed");
  }
  require_recipe(whiten_bias_epochs >= 0, "whiten_bias_epochs", whiten_bias_epochs, ">= 0");
  require_recipe(eval_views == 1 || eval_views == 2 || eval_views == 6, "eval_views", eval_views,
                 "1, 2 or 6");
  for (const float value : stddev) require_recipe(value > 0, "stddev", value, "> 0");
  optimizer.validate();
  schedule.validate();
  train.validate();
  eval.validate();
}

Precision Recipe::resolved_precision() const {
  if (precision) return *precision;
  return cpu_supports(Precision::bf16) ? Precision::bf16 : Precision::fp32;
}

std::vector<std::string> describe(const Recipe& recipe, int update_batch) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format(
      "{} at {}x{}, {:g} epoch{}, global batch {} in micro-batches of {} samples, {}", recipe.name,
      recipe.input.width, recipe.input.height, recipe.epochs, recipe.epochs == 1 ? "" : "s",
      recipe.batch, recipe.micro_batch_size, to_string(recipe.last_batch)));
  lines.push_back(recipe.optimizer.describe(update_batch > 0 ? update_batch : recipe.batch,
                                            recipe.schedule.describe()));
  std::string extras = fmt::format("label smoothing {:g}", recipe.label_smoothing);
  if (recipe.average.kind != AverageKind::none) extras += ", " + describe_average(recipe.average);
  if (recipe.zero_gamma) extras += ", zero gamma";
  if (recipe.whitening) {
    extras += fmt::format(", first convolution whitens (its bias learns for {:g} epoch{})",
                          recipe.whiten_bias_epochs, recipe.whiten_bias_epochs == 1 ? "" : "s");
  }
  lines.push_back(extras);
  lines.push_back("training pixels: " + recipe.train.describe());
  lines.push_back(fmt::format("evaluation: {}, {} view{}", recipe.eval.describe(),
                              recipe.eval_views, recipe.eval_views > 1 ? "s" : ""));
  return lines;
}

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
