#include "train/run/options.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "pipeline/files/invalid_field.h"
#include "pipeline/measure_hooks.h"
#include "staging/allowed_cores.h"
#include "train/model/recipe_json.h"
#include "train/run/replica.h"

namespace stoker {
namespace {

void require_option(bool ok, const std::string& field, const std::string& problem) {
  if (!ok) throw InvalidField("train", field, problem);
}

void require_not_negative(int64_t value, const std::string& field) {
  require_option(value >= 0, field, fmt::format(": {} is negative", value));
}

// Whether the net has batch norms is seen where engines are made.
void require_replicas_that_meet(const TrainOptions& options) {
  const std::string field = "sync_batch_norm";
  require_option(sends_gradients(options.reduce), field,
                 fmt::format(" is on, but with reduce {} replicas exchange nothing",
                             to_string(options.reduce)));
  const int processes = options.processes ? options.processes->size() : 1;
  require_option(
      processes == 1, field,
      fmt::format(" is on, but only replicas of one process synchronise batch norms, and these "
                  "are {} processes; take --devices cpu:N or cuda:all in one",
                  processes));
}

}  // namespace

TrainOptions complete_options(TrainOptions options) {
  options.recipe.validate();
  if (!options.devices.empty()) options.replicas = static_cast<int>(options.devices.size());
  require_option(options.replicas >= 1, "devices",
                 fmt::format(": {} is below 1", options.replicas));
  require_option(options.accumulate >= 1, "accumulate",
                 fmt::format(": {} is below 1", options.accumulate));
  require_option(options.keep_checkpoints >= 1, "keep_checkpoints",
                 fmt::format(": {} is below 1", options.keep_checkpoints));
  require_not_negative(options.bucket_bytes, "bucket_bytes");
  require_not_negative(measure_hooks(options).resident_bytes, "resident_bytes");
  require_option(options.eval_every_epochs >= 0, "eval_every_epochs",
                 fmt::format(": {:g} is negative", options.eval_every_epochs));
  require_option(options.grad_wire == GradWire::fp32 || sends_gradients(options.reduce),
                 "grad_wire",
                 fmt::format(" is {}, but with reduce {} no gradients travel",
                             to_string(options.grad_wire), to_string(options.reduce)));
  if (options.sync_batch_norm) require_replicas_that_meet(options);
  const int cores = usable_cores(options.local_processes);
  if (options.threads <= 0) options.threads = cores;
  if (options.feed.workers < 0) options.feed.workers = cores;
  if (options.slots < 0) options.slots = on_gpus(options.devices) ? 2 : 0;
  return options;
}

Precision run_precision(const TrainOptions& options) {
  if (on_gpus(options.devices) && !options.recipe.precision) return Precision::bf16;
  return options.recipe.resolved_precision();
}

int synchronised_replicas(const TrainOptions& options) {
  return options.sync_batch_norm ? options.replicas : 0;
}

const MeasureHooks& measure_hooks(const TrainOptions& options) {
  static const MeasureHooks nothing;
  return options.measure ? *options.measure : nothing;
}

void require_same_options(const TrainOptions& options, TrainProcesses& processes) {
  processes.require_same(options.replicas, "devices: the number of replicas");
  processes.require_same_text(
      fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {}", recipe_to_json(options.recipe).dump(),
                  options.accumulate, options.seed, options.max_steps, options.checkpoint_steps,
                  options.eval_every_epochs, options.limit_train, options.limit_eval,
                  static_cast<int>(measure_hooks(options).feed), static_cast<int>(options.reduce),
                  static_cast<int>(options.grad_wire), options.bucket_bytes, options.row_losses),
      "recipe and options");
}

}  // namespace stoker
