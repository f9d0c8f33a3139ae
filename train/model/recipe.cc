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

}  // namespace stoker
