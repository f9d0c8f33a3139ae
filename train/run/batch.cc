// --batch auto: what a batch takes on the devices of a run, and how much there is.
#include <fmt/format.h>

#include <algorithm>

#include "staging/batch_layout.h"
#include "staging/device_list.h"
#include "train/cuda/engine.h"
#include "train/run/batch_size.h"
#include "train/run/setup.h"

namespace stoker {
namespace {

constexpr double kShare = 0.8;  // of what is free: the rest is for decoding and for others
constexpr int64_t kGpuStep = 8;
constexpr int64_t kEvalSlabs = 4;  // of its ring and its slots

int64_t slab_bytes(const TrainSetup& setup, int64_t rows) {
  const Size input = setup.options.recipe.input;
  return static_cast<int64_t>(BatchLayout({.rows = static_cast<int>(rows),
                                           .height = input.height,
                                           .width = input.width,
                                           .note_bytes_per_row = sizeof(RowNote)})
                                  .slab_bytes());
}

// An engine of one shard per thread is made and asked; more shards add a part each.
BatchLimits cpu_limits(const TrainSetup& setup, const NetSpec& net, const EngineFactory& factory) {
  const TrainOptions& options = setup.options;
  const int shard = options.recipe.rows_per_shard;
  const int threads = std::max(1, options.threads / options.replicas);
  EngineOptions engine = setup.engine_options();
  engine.rows = shard * threads;
  engine.rows_per_shard = shard;
  engine.nominal_rows = engine.rows;
  engine.workers = threads;
  const auto asked = factory ? factory(net, engine, 0) : make_cpu_engine(net, engine);
  const int64_t base = asked->planned_bytes();
  const auto part = asked->part_floats() * static_cast<int64_t>(sizeof(float));
  const int64_t slabs = options.ring_depth + options.slots + (setup.eval ? kEvalSlabs : 0);
  const int sharing = options.replicas * options.local_processes;

  BatchLimits limits;
  limits.step = shard;
  limits.memory_bytes = static_cast<int64_t>(kShare * free_host_bytes()) / sharing;
  limits.memory_name = fmt::format("{:.0f}% of the memory that is free{}", 100 * kShare,
                                   sharing > 1 ? fmt::format(", for one of {}", sharing) : "");
  limits.bytes = [=, &setup](int64_t rows) {
    return base + std::max<int64_t>(rows / shard - threads, 0) * part +
           slabs * slab_bytes(setup, rows);
  };
  return limits;
}

BatchChoice gpu_batch(const TrainSetup& setup, const NetSpec& net, int64_t most_rows) {
  const TrainOptions& options = setup.options;
  const std::string& name = options.devices[0];
  const auto sharing = std::count(options.devices.begin(), options.devices.end(), name);
  const auto device = make_device(name);
  int64_t memory = 0;
  for (const CudaDeviceInfo& info : query_cuda().devices) {
    if (info.name == name) memory = info.memory_bytes;
  }
  const auto usable = static_cast<int64_t>(kShare * static_cast<double>(memory)) / sharing;
  EngineOptions engine = setup.engine_options();
  engine.rows = engine.rows_per_shard = kGpuStep;
  engine.nominal_rows = engine.rows;
  const int64_t slots = std::max(options.slots, 1) * slab_bytes(setup, kGpuStep) / kGpuStep;
  const int64_t fits = largest_cuda_batch(net, engine, *device, usable, slots, kGpuStep);
  if (fits < kGpuStep) {
    throw std::runtime_error(fmt::format("batch: auto: not even {} rows fit into {:.0f}% of {}",
                                         kGpuStep, 100 * kShare, name));
  }
  const int64_t rows = std::min(fits, most_rows / kGpuStep * kGpuStep);
  return {std::max(rows, kGpuStep),
          fmt::format("{} rows per device: {} fit into {:.2f} GiB, {:.0f}% of {}'s memory{}",
                      std::max(rows, kGpuStep), fits,
                      static_cast<double>(usable) / (int64_t{1} << 30), 100 * kShare, name,
                      rows < fits ? "; no more because of the number of training samples" : "")};
}

}  // namespace

void TrainSetup::choose_batch(const NetSpec& planned, const EngineFactory& make_engine) {
  const int64_t most = std::max<int64_t>(train.size() / all_replicas(), 1);
  BatchChoice choice;
  if (on_gpus(options.devices)) {
    choice = gpu_batch(*this, planned, most);
  } else {
    BatchLimits limits = cpu_limits(*this, planned, make_engine);
    limits.most_rows = most;
    limits.most_name = fmt::format("the {} training samples", train.size());
    choice = largest_batch(limits);
  }
  // The process with the least memory decides.
  const int64_t rows_everywhere = -processes.most(-choice.rows);
  if (rows_everywhere < choice.rows) {
    choice.reason += fmt::format("; {} in another process", rows_everywhere);
  }
  options.recipe.batch = static_cast<int>(rows_everywhere * all_replicas());
  notes.push_back(fmt::format("batch {}, chosen: {}", options.recipe.batch, choice.reason));
}

}  // namespace stoker
