#include "train/run/batch_chooser.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "staging/batch_layout.h"
#include "staging/device_list.h"
#include "staging/group_memory.h"
#include "train/collective/device_norm_exchange.h"
#include "train/collective/norm_exchange.h"
#include "train/cuda/engine.h"
#include "train/engine/byte_text.h"
#include "train/run/batch_shape.h"
#include "train/run/options.h"
#include "train/run/replica.h"

namespace stoker {
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
// further micro-batch adds a gradient buffer. The sum of a single one needs no buffer.
BatchLimits cpu_limits(const BatchQuestion& question) {
  const TrainOptions& options = question.options;
  const int micro_batch = options.recipe.micro_batch_size;
  const int threads = std::max(1, options.threads / options.replicas);
  EngineOptions engine = engine_options(options, {.rows = micro_batch * threads,
                                                  .micro_batch_size = micro_batch,
                                                  .engine_threads = threads,
                                                  .parts = options.accumulate});
  engine.nominal_rows = engine.rows;
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
  const bool sums_in_place = threads == 1 && options.accumulate == 1;
  limits.bytes = [=, &question](int64_t rows) {
    const int64_t more = std::max<int64_t>(rows / micro_batch - threads, 0);
    return base + (more + (sums_in_place && more > 0 ? 1 : 0)) * part +
           slabs * slab_bytes(question, rows);
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
          ? cuda_server_bytes(question.net, engine, options.replicas - static_cast<int>(sharing))
          : 0;
  const int64_t usable =
      (static_cast<int64_t>(kShare * static_cast<double>(memory)) - server) / sharing;
  const int64_t slots = std::max(options.slots, 1) * slab_bytes(question, kGpuStep) / kGpuStep;
  const int64_t fits =
      largest_cuda_batch(question.net, engine, usable, slots, static_cast<int>(kGpuStep));
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
