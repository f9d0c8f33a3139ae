#include "train/run/batch_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "pipeline/files/invalid_field.h"
#include "staging/batch_layout.h"
#include "staging/device_list.h"
#include "staging/group_memory.h"
#include "train/collective/device_norm_exchange.h"
#include "train/collective/norm_exchange.h"
#include "train/device/memory.h"
#include "train/engine/byte_text.h"
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
  engine.alone = shape.update_batch == shape.rows * shape.parts;
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

namespace {

constexpr double kShare = 0.8;  // of the free memory; the rest is for decoding and other programs
constexpr int64_t kGpuStep = 8;
constexpr int64_t kEvalSlabs = 4;  // of the evaluation's ring and slots

int64_t slab_bytes(const BatchQuestion& question, int64_t rows) {
  BatchShape shape =
      batch_shape(question.options.recipe, static_cast<int>(rows), question.target_bytes);
  shape.note_bytes_per_row = sizeof(RowNote);
  return static_cast<int64_t>(BatchLayout(shape).slab_bytes());
}

// Computes the limits from the planned bytes of an engine with one micro-batch per thread; every
// further micro-batch adds a gradient buffer, unless the engine adds them up.
BatchLimits cpu_limits(const BatchQuestion& question) {
  const TrainOptions& options = question.options;
  const int micro_batch = options.recipe.micro_batch_size;
  const int threads = std::max(1, options.threads / options.replicas);
  EngineOptions engine = engine_options(options, {.rows = micro_batch * threads,
                                                  .micro_batch_size = micro_batch,
                                                  .engine_threads = threads,
                                                  .parts = options.accumulate});
  engine.nominal_rows = engine.rows;
  engine.alone = question.all_replicas == 1;
  // Engines whose batch norms are synchronised have another layout; this one meets nobody.
  NormExchange norms(1, 0, 0);
  if (synchronised_replicas(options) > 1) engine.norms = &norms;
  const auto asked = question.make_engine ? question.make_engine(question.net, engine, 0)
                                          : make_cpu_engine(question.net, engine);
  const int64_t base = asked->planned_bytes();
  const auto part = asked->gradient_buffer_floats() * static_cast<int64_t>(sizeof(float));
  const int64_t slabs = options.ring_depth + options.slots + (question.evaluates ? kEvalSlabs : 0);
  const int sharing = options.replicas * options.local_processes;

  BatchLimits limits;
  limits.step = micro_batch;
  limits.memory_bytes = static_cast<int64_t>(kShare * free_host_bytes()) / sharing;
  limits.memory_name = fmt::format("{:.0f}% of the memory that is free{}", 100 * kShare,
                                   sharing > 1 ? fmt::format(", for one of {}", sharing) : "");
  limits.bytes = [=, &question, alone = engine.alone](int64_t rows) {
    const int64_t more = alone ? 0 : std::max<int64_t>(rows / micro_batch - threads, 0);
    return base + more * part + slabs * slab_bytes(question, rows);
  };
  return limits;
}

BatchChoice gpu_batch(const BatchQuestion& question, int64_t most_rows) {
  const TrainOptions& options = question.options;
  const std::string& name = options.devices[0];
  const auto sharing = std::count(options.devices.begin(), options.devices.end(), name);
  make_device(name);  // throws the reason if the GPU cannot be used
  int64_t memory = 0;
  for (const CudaDeviceInfo& info : query_cuda().devices) {
    if (info.name == name) memory = info.memory_bytes;
  }
  EngineOptions engine = engine_options(options, {.rows = static_cast<int>(kGpuStep),
                                                  .micro_batch_size = static_cast<int>(kGpuStep),
                                                  .parts = options.accumulate});
  engine.nominal_rows = engine.rows;
  // Batch norms that are synchronised have other steps; those of this plan meet nobody.
  DeviceNormExchange norms(1, 0);
  if (synchronised_replicas(options) > 1) engine.device_norms = &norms;
  const int64_t server =
      wants_server(options.reduce)
          ? device_server_bytes(question.net, engine, options.replicas - static_cast<int>(sharing))
          : 0;
  const int64_t usable =
      (static_cast<int64_t>(kShare * static_cast<double>(memory)) - server) / sharing;
  const int64_t slots = std::max(options.slots, 1) * slab_bytes(question, kGpuStep) / kGpuStep;
  const int64_t fits =
      largest_device_batch(question.net, engine, {}, usable, slots, static_cast<int>(kGpuStep));
  std::string where = fmt::format("{:.0f}% of {}'s memory", 100 * kShare, name);
  if (server > 0) where += fmt::format(" without the {} of the server", mebibytes(server));
  if (fits < kGpuStep) {
    throw std::runtime_error(
        fmt::format("batch: auto: not even {} samples fit into {}", kGpuStep, where));
  }
  const int64_t rows = std::min(fits, most_rows / kGpuStep * kGpuStep);
  return {
      std::max(rows, kGpuStep),
      fmt::format("{} samples per device: {} fit into {:.2f} GiB, {}{}", std::max(rows, kGpuStep),
                  fits, static_cast<double>(usable) / (int64_t{1} << 30), where,
                  rows < fits ? "; no more because of the number of training samples" : "")};
}

int64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    int64_t kibibytes = 0;
    if (words >> name >> kibibytes && name == "MemAvailable:") return kibibytes * 1024;
  }
  return std::numeric_limits<int64_t>::max();
}

}  // namespace

BatchChoice largest_batch(const BatchLimits& limits) {
  const auto fits = [&](int64_t steps) {
    return limits.bytes(steps * limits.step) <= limits.memory_bytes;
  };
  if (!fits(1)) {
    throw std::runtime_error(fmt::format(
        "batch: auto: not even {} samples per device fit: they take {}, and {} are {}", limits.step,
        gibibytes(limits.bytes(limits.step)), limits.memory_name, gibibytes(limits.memory_bytes)));
  }
  const int64_t most = std::max<int64_t>(limits.most_rows / limits.step, 1);
  int64_t good = 1, bad = most + 1;
  while (bad - good > 1) {
    const int64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  BatchChoice choice;
  choice.rows = good * limits.step;
  const int64_t next = choice.rows + limits.step;
  const std::string why_no_more =
      good < most ? fmt::format("{} samples would take {}", next, gibibytes(limits.bytes(next)))
                  : "no more because of " + limits.most_name;
  choice.reason =
      fmt::format("{} samples per device, the most that fit: they take {} of {} ({}); {}",
                  choice.rows, gibibytes(limits.bytes(choice.rows)), gibibytes(limits.memory_bytes),
                  limits.memory_name, why_no_more);
  return choice;
}

int64_t free_host_bytes() {
  const int64_t in_groups = read_group_memory().free_bytes;
  return in_groups < 0 ? available_memory() : std::min(available_memory(), in_groups);
}

BatchChoice choose_batch(const BatchQuestion& question) {
  const int64_t most = std::max<int64_t>(question.samples / question.all_replicas, 1);
  if (on_gpus(question.options.devices)) return gpu_batch(question, most);
  BatchLimits limits = cpu_limits(question);
  limits.most_rows = most;
  limits.most_name = fmt::format("the {} training samples", question.samples);
  return largest_batch(limits);
}

}  // namespace stoker
