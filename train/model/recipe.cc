#include "train/model/recipe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "pipeline/invalid_field.h"
#include "train/model/models.h"

namespace stoker {
namespace {

// The lists of stages below have no sizes, so that images become as large as set_input() says. The
// `resize` before a random_crop is for data of another size; it changes nothing of the others.

// Mean and deviation of CIFAR-10's training images, as every recipe for it uses them.
constexpr std::array<float, 3> kCifarMean{0.4914f, 0.4822f, 0.4465f};
constexpr std::array<float, 3> kCifarStddev{0.2470f, 0.2435f, 0.2616f};

// cifar10-airbench's 94 % recipe (Jordan 2024). It sums the loss over the batch where we take the
// mean, so its rate of 11.5 per 1024 (1 + 1 / (1 - momentum)) examples is multiplied by the batch
// here. Its decay applies to the product with the rate, so it is divided by the rate here.
Recipe airnet(const std::string& name) {
  Recipe recipe;
  recipe.name = name;
  recipe.epochs = 12;  // airbench: 9.9, for its 94 % on files that never went through JPEG
  recipe.batch = 1024;
  recipe.micro_batch_size = 512;
  recipe.last_batch = LastBatch::drop;
  recipe.mean = kCifarMean;
  recipe.stddev = kCifarStddev;
  recipe.train.stages =
      StageList("resize | random_crop(padding=2, mode='reflect') | flip(alternating=True)");
  recipe.eval.stages = StageList("resize");
  recipe.set_input({32, 32});

  OptimizerSpec& optimizer = recipe.optimizer;
  optimizer.momentum = 0.85;
  optimizer.nesterov = true;
  optimizer.lr_ref_batch = 1024;
  optimizer.learning_rate = 11.5 / (1 + 1 / (1 - optimizer.momentum));
  optimizer.weight_decay = 0.0153 / 11.5;
  optimizer.decay_norms = true;
  optimizer.norm_bias_factor = 64;
  optimizer.train_norm_weights = false;
  recipe.schedule.kind = ScheduleKind::triangle;
  recipe.schedule.start = 0.2;
  recipe.schedule.peak = 0.23;
  recipe.schedule.end = 0.07;
  recipe.label_smoothing = 0.2;
  recipe.average.kind = AverageKind::lookahead;
  recipe.average.every = 5;
  recipe.average.decay = 0.95;
  recipe.average.ramp = 3;
  recipe.whitening = true;
  recipe.whiten_bias_epochs = 3;
  recipe.eval_views = 6;
  return recipe;
}

Recipe airnet_narrow(const std::string& name) {
  Recipe recipe = airnet(name);
  recipe.epochs = 8;
  recipe.batch = 512;
  recipe.micro_batch_size = 256;
  return recipe;
}

// He et al. 2015, section 4.2: 64k steps at batch 128 are 164 epochs; the rate is divided by 10
// after 32k and 48k steps.
Recipe cifar_resnet(const std::string& name) {
  Recipe recipe;
  recipe.name = name;
  recipe.epochs = 164;
  recipe.batch = 128;
  recipe.micro_batch_size = 32;
  recipe.mean = kCifarMean;
  recipe.stddev = kCifarStddev;
  recipe.train.stages = StageList("resize | random_crop(padding=4) | flip");
  recipe.eval.stages = StageList("resize");
  recipe.set_input({32, 32});
  recipe.optimizer.learning_rate = 0.1;
  recipe.optimizer.lr_ref_batch = 128;
  recipe.schedule.kind = ScheduleKind::step;
  recipe.schedule.milestones = {0.5, 0.75};
  if (name == "resnet110") {  // too high an initial rate otherwise, as the paper says
    recipe.schedule.warmup_epochs = 1;
    recipe.schedule.warmup_start = 0.1;
  }
  return recipe;
}

// "ImageNet in 1 Hour" (Goyal et al. 2017), with a cosine and label smoothing as in later recipes.
Recipe imagenet_resnet(const std::string& name) {
  Recipe recipe;
  recipe.name = name;
  recipe.epochs = 90;
  recipe.batch = 256;
  recipe.micro_batch_size = 32;
  recipe.train.stages = StageList("random_resized_crop | flip");
  recipe.eval.stages = StageList("resize_center_crop");
  recipe.set_input({224, 224});
  recipe.optimizer.learning_rate = 0.1;
  recipe.optimizer.lr_ref_batch = 256;
  recipe.schedule.kind = ScheduleKind::cosine;
  recipe.schedule.warmup_epochs = 5;
  recipe.label_smoothing = 0.1;
  recipe.zero_gamma = true;
  return recipe;
}

constexpr int kMaxBatch = 1 << 24;  // the Loader's limit for one device

void require(bool ok, const char* field, double value, const char* rule) {
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
  require(epochs > 0 && epochs <= 1e6, "epochs", epochs, "in (0, 1e6]");
  require(batch >= 1 && batch <= kMaxBatch, "batch", batch, "1 to 2^24");
  require(micro_batch_size >= 1, "micro_batch_size", micro_batch_size, ">= 1");
  require(input == train.output && input == eval.output, "input (width)", input.width,
          "the output of both augmentations: use set_input()");
  require(label_smoothing >= 0 && label_smoothing < 1, "label_smoothing", label_smoothing,
          "in [0, 1)");
  require(average.every >= 1, "average.every", average.every, ">= 1");
  require(average.decay >= 0 && average.decay < 1, "average.decay", average.decay, "in [0, 1)");
  require(average.ramp >= 0, "average.ramp", average.ramp, ">= 0");
  for (const auto& [field, spec] : {std::pair("train", &train), std::pair("eval", &eval)}) {
    if (spec->views() == 1) continue;
    throw InvalidField("recipe", field,
                       " has " + std::to_string(spec->views()) +
                           " views, but the trainer learns from one row of each sample");
  }
  if (eval.mix.on()) {
    throw InvalidField("recipe", "eval.mix", " is on, but only rows for training are mixed");
  }
  require(whiten_bias_epochs >= 0, "whiten_bias_epochs", whiten_bias_epochs, ">= 0");
  require(eval_views == 1 || eval_views == 2 || eval_views == 6, "eval_views", eval_views,
          "1, 2 or 6");
  for (const float value : stddev) require(value > 0, "stddev", value, "> 0");
  optimizer.validate();
  schedule.validate();
  train.validate();
  eval.validate();
}

Precision Recipe::resolved_precision() const {
  if (precision) return *precision;
  return cpu_supports(Precision::bf16) ? Precision::bf16 : Precision::fp32;
}

Recipe default_recipe(const std::string& model) {
  if (model == "airnet") return airnet(model);
  if (model == "airnet-narrow") return airnet_narrow(model);
  for (const char* name : {"resnet18", "resnet34", "resnet50"}) {
    if (model == name) return imagenet_resnet(model);
  }
  const std::vector<std::string> names = list_models();
  if (std::find(names.begin(), names.end(), model) == names.end()) {
    throw std::invalid_argument(
        fmt::format("no model \"{}\"; there are {}", model, fmt::join(names, ", ")));
  }
  return cifar_resnet(model);
}

std::vector<std::string> describe(const Recipe& recipe) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format(
      "{} at {}x{}, {:g} epoch{}, global batch {} in micro-batches of {} samples, {}", recipe.name,
      recipe.input.width, recipe.input.height, recipe.epochs, recipe.epochs == 1 ? "" : "s",
      recipe.batch, recipe.micro_batch_size, to_string(recipe.last_batch)));
  lines.push_back(recipe.optimizer.describe(recipe.batch, recipe.schedule.describe()));
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
