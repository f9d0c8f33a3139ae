// The replicas of a run: their devices, the engines on them, and what sums their gradients.
#include <fmt/format.h>

#include <stdexcept>

#include "pipeline/invalid_field.h"
#include "train/collective/cuda/collective.h"
#include "train/run/setup.h"

namespace stoker {
namespace {

// In the host's memory, over all processes.
std::unique_ptr<Collective> on_host(const TrainOptions& options) {
  if (options.processes) return make_process_collective(*options.processes, options.replicas);
  return make_host_collective(options.replicas);
}

// Of engines that queue their work on streams.
std::unique_ptr<Collective> between_devices(const TrainSetup& setup) {
  const TrainOptions& options = setup.options;
  std::vector<DeviceReplica> devices;
  for (const Replica& replica : setup.replicas) {
    devices.push_back({replica.device.get(), replica.engine->stream()});
  }
  if (!on_gpus(options.devices)) return make_staged_collective(devices, on_host(options));
  CudaCollectiveOptions cuda;
  cuda.how = options.reduce;
  if (options.grad_wire == Precision::bf16) cuda.narrow_floats = total_count(setup.parameters);
  cuda.host = on_host(options);
  cuda.first_rank = setup.processes.rank() * options.replicas;
  if (ProcessGroup* group = options.processes; group && group->nccl()) {
    cuda.group = group->nccl();
  } else if (group) {
    cuda.share = [group](std::span<std::byte> bytes) { broadcast(*group, bytes); };
  }
  return make_cuda_collective(devices, std::move(cuda));
}

std::unique_ptr<Collective> make_collective(const TrainSetup& setup) {
  const TrainOptions& options = setup.options;
  const ReduceKind kind = options.reduce;
  if (kind == ReduceKind::none) return make_no_collective(options.replicas);
  if (setup.replicas[0].engine->stream()) {
    return setup.all_replicas() == 1 ? make_no_collective(1) : between_devices(setup);
  }
  if (kind == ReduceKind::nccl || kind == ReduceKind::device) {
    throw InvalidField(
        "train", "reduce",
        fmt::format(" is {}, which is between GPUs; the replicas on {} reduce on the host",
                    kind == ReduceKind::nccl ? "nccl" : "device",
                    setup.replicas[0].device->name()));
  }
  return on_host(options);
}

}  // namespace

EngineOptions TrainSetup::engine_options() const {
  const Recipe& recipe = options.recipe;
  EngineOptions engine;
  engine.rows = rows;
  engine.rows_per_shard = recipe.rows_per_shard;
  engine.nominal_rows = recipe.batch;
  engine.precision = precision;
  engine.workers = engine_threads;
  engine.mean = recipe.mean;
  engine.stddev = recipe.stddev;
  engine.label_smoothing = static_cast<float>(recipe.label_smoothing);
  return engine;
}

void TrainSetup::make_replicas(const EngineFactory& make_engine) {
  const EngineOptions engine = engine_options();
  for (int i = 0; i < options.replicas; ++i) {
    if (make_engine) {
      replicas.push_back({make_host_device(i), make_engine(net, engine, i)});
    } else {
      const std::string name = options.devices.empty() ? fmt::format("cpu:{}", i)  //
                                                       : options.devices[static_cast<size_t>(i)];
      replicas.push_back(make_replica(name, net, engine));
    }
  }
  collective = make_collective(*this);
  if (options.bucket_bytes > 0 && all_replicas() > 1 && collective->ranges()) reduce_in_buckets();
}

// Each bucket's sum is queued behind it, beside the rest of the backward pass. Every replica cuts
// the same net in the same way.
void TrainSetup::reduce_in_buckets() {
  for (int rank = 0; rank < options.replicas; ++rank) {
    Engine* engine = replicas[static_cast<size_t>(rank)].engine.get();
    in_buckets = engine->reduce_in_buckets(
        options.bucket_bytes, [engine, rank, to = collective->ranges()](PartRange range) {
          to->start(rank, engine->parts(), engine->reduced(), range);
        });
  }
}

}  // namespace stoker
