#include "train/run/batch_shape.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/files/invalid_field.h"
#include "train/run/options.h"
#include "train/run/replica.h"

namespace stoker {
namespace {

void require_batch_shape(bool ok, const std::string& problem) {
  if (!ok) throw InvalidField("train", "batch", problem);
}

// With fewer than half of the wanted rows, batch norm would compute something else.
bool is_near(int micro_batch, int wanted) { return 2 * micro_batch >= wanted; }

int largest_divisor(int value, int at_most) {
  int divisor = std::min(value, at_most);
  while (value % divisor != 0) --divisor;
  return divisor;
}

// Chooses the micro-batches on the CPU: the recipe's, or the largest smaller ones that divide the
// rows.
void cut_into_micro_batches(const TrainOptions& options, ReplicaShape& shape) {
  const Recipe& recipe = options.recipe;
  const int rows = shape.rows, wanted = std::min(recipe.micro_batch_size, rows);
  const int micro_batch = largest_divisor(rows, wanted);
  const int step = wanted * shape.all_replicas * shape.parts;
  const int fewer = recipe.batch / step * step;
  require_batch_shape(
      is_near(micro_batch, wanted),
      fmt::format(
          ": {} samples on {} devices are {} each, which do not divide into micro-batches of {} "
          "samples for batch norm (`micro_batch_size`), only of {}: take a batch of {} or {}",
          recipe.batch, shape.all_replicas, rows, wanted, micro_batch, fewer, fewer + step));
  if (micro_batch != recipe.micro_batch_size) {
    shape.notes.push_back(fmt::format(
        "{} samples per device are cut into micro-batches of {} samples, not of the recipe's "
        "{}: batch norm "
        "sees other samples than in a run with micro-batches of {}",
        rows, micro_batch, recipe.micro_batch_size, recipe.micro_batch_size));
  }
  shape.micro_batch_size = micro_batch;
  shape.engine_threads = std::max(1, options.threads / options.replicas);
  if (rows / micro_batch < shape.engine_threads) {
    shape.notes.push_back(
        fmt::format("{} micro-batches per device keep {} of {} threads busy: fewer samples in "
                    "each would use more, and change what batch norm sees",
                    rows / micro_batch, rows / micro_batch, shape.engine_threads));
  }
}

}  // namespace

ReplicaShape cut_batch(const TrainOptions& options, int processes) {
  ReplicaShape shape;
  shape.all_replicas = processes * options.replicas;
  shape.parts = options.accumulate;
  const int batch = options.recipe.batch;
  const int64_t shares = int64_t{shape.all_replicas} * shape.parts;
  require_batch_shape(
      batch % shares == 0,
      fmt::format(": the global batch of {} does not divide over {} devices{}", batch,
                  shape.all_replicas,
                  shape.parts > 1 ? fmt::format(" in {} parts (`accumulate`)", shape.parts) : ""));
  shape.rows = static_cast<int>(batch / shares);
  if (options.reduce == ReduceKind::independent) {
    shape.replica_models = shape.models = shape.all_replicas;
    shape.local_models = options.replicas;
  }
  shape.update_batch = batch / shape.models;
  if (on_gpus(options.devices)) {
    shape.micro_batch_size = shape.rows;  // one net per device: batch norm sees all of its rows
  } else {
    cut_into_micro_batches(options, shape);
  }
  return shape;
}

EngineOptions engine_options(const TrainOptions& options, const ReplicaShape& shape) {
  const Recipe& recipe = options.recipe;
  EngineOptions engine;
  engine.rows = shape.rows;
  engine.micro_batch_size = shape.micro_batch_size;
  engine.nominal_rows = shape.update_batch;
  engine.accumulates = shape.parts > 1;
  engine.precision = run_precision(options);
  engine.workers = shape.engine_threads;
  engine.mean = recipe.mean;
  engine.stddev = recipe.stddev;
  engine.label_smoothing = static_cast<float>(recipe.label_smoothing);
  engine.seed = options.seed;
  engine.optimizer = recipe.optimizer.kind;
  engine.clips = recipe.optimizer.clip_norm > 0;
  return engine;
}

BatchShape batch_shape(const Recipe& recipe, int rows, int target_bytes) {
  BatchShape shape{.rows = rows, .height = recipe.input.height, .width = recipe.input.width};
  if (target_bytes > 0) shape.target_bytes.push_back(target_bytes);
  if (!recipe.train.mix.on()) return shape;
  for (const TargetColumn& column : mix_columns()) shape.target_bytes.push_back(column.bytes());
  return shape;
}

}  // namespace stoker
