#include "train/run/replica_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "pipeline/files/invalid_field.h"
#include "train/collective/cuda/collective.h"
#include "train/collective/wire/codec.h"
#include "train/run/options.h"

namespace stoker {
namespace {

std::shared_ptr<Ranks> all_ranks(const TrainOptions& options) {
  return std::make_shared<Ranks>(options.replicas, options.processes);
}

SumOptions sum_options(const TrainOptions& options, const Engine& engine) {
  return {.wire = options.grad_wire,
          .gradient_floats = engine.gradient_floats(),
          .buffer_floats = engine.gradient_buffer_floats(),
          .seed = options.seed};
}

std::vector<DeviceReplica> device_replicas(const std::vector<Replica>& replicas) {
  std::vector<DeviceReplica> devices;
  for (const Replica& replica : replicas) {
    devices.push_back({replica.device.get(), replica.engine->stream()});
  }
  return devices;
}

// Makes a collective for engines that queue their work on streams.
std::unique_ptr<Collective> between_devices(const TrainOptions& options,
                                            const std::vector<Replica>& replicas) {
  const std::vector<DeviceReplica> devices = device_replicas(replicas);
  const SumOptions sum = sum_options(options, *replicas[0].engine);
  if (on_gpus(options.devices)) {
    return make_cuda_collective(devices,
                                {.how = options.reduce, .sum = sum, .ranks = all_ranks(options)});
  }
  return make_staged_collective(devices, make_host_collective(all_ranks(options), sum));
}

[[noreturn]] void refuse_server(const TrainOptions& options, const std::string& why,
                                const char* instead) {
  throw InvalidField("train", "reduce",
                     fmt::format(" is {}, {}; take {}", to_string(options.reduce), why, instead));
}

// Throws if these replicas cannot have the server that is wanted.
void require_server(const TrainOptions& options, const std::vector<Replica>& replicas) {
  const std::string& first = replicas[0].device->name();
  ProcessGroup* const group = options.processes;
  if (!replicas[0].engine->stream()) {
    if (options.reduce == ReduceKind::server_device) {
      refuse_server(
          options,
          fmt::format("whose weights lie on a device; those of {} lie in host memory", first),
          to_string(ReduceKind::server_host));
    }
    if (group && !group->messages()) {
      refuse_server(
          options,
          fmt::format("whose server gets messages through MPI; these {} processes have none",
                      group->size()),
          to_string(ReduceKind::automatic));
    }
    return;
  }
  if (options.reduce == ReduceKind::server_host) {
    refuse_server(
        options,
        fmt::format("whose weights lie in host memory; those of {} lie on the device", first),
        to_string(ReduceKind::server_device));
  }
  if (group && group->size() > 1) {
    refuse_server(options,
                  fmt::format("whose server on {} takes the gradients of one process; there are {}",
                              first, group->size()),
                  to_string(ReduceKind::automatic));
  }
  if (options.grad_wire != GradWire::fp32) {
    throw InvalidField(
        "train", "grad_wire",
        fmt::format(" is {}, but {} replicas push fp32 gradients to a parameter server on {}; "
                    "all-reduce:host carries it",
                    to_string(options.grad_wire), replicas.size(), first));
  }
}

// Makes a collective whose sum stays with the server in host memory, in process 0.
std::unique_ptr<Collective> push_to_host(const TrainOptions& options, const Engine& replica) {
  SumOptions sum = sum_options(options, replica);
  sum.to_server = true;
  return make_host_collective(all_ranks(options), sum);
}

// Makes a collective whose sum stays with the server on the first replica's device.
std::unique_ptr<Collective> push_to_device(const TrainOptions& options,
                                           const std::vector<Replica>& replicas, Engine& server) {
  const Engine& engine = *replicas[0].engine;
  const PushTarget target{.server = {replicas[0].device.get(), server.stream()},
                          .buffers = static_cast<int>(engine.gradient_buffers().size()),
                          .floats = engine.gradient_buffer_floats()};
  const std::vector<DeviceReplica> devices = device_replicas(replicas);
  if (!on_gpus(options.devices)) {
    return make_device_collective(devices, sum_buffers_on_host, target);
  }
  return make_cuda_collective(devices, {.how = ReduceKind::server_device, .push = target});
}

std::unique_ptr<Collective> make_collective(const TrainOptions& options, const ReplicaShape& shape,
                                            const std::vector<Replica>& replicas) {
  const ReduceKind kind = options.reduce;
  if (!sends_gradients(kind)) return make_no_collective(options.replicas);
  if (shape.all_replicas == 1 && options.grad_wire != GradWire::fp32) {
    throw InvalidField("train", "grad_wire",
                       fmt::format(" is {}, but a single replica sends no gradients",
                                   to_string(options.grad_wire)));
  }
  if (replicas[0].engine->stream()) {
    return shape.all_replicas == 1 ? make_no_collective(1) : between_devices(options, replicas);
  }
  if (kind == ReduceKind::nccl || kind == ReduceKind::device) {
    throw InvalidField(
        "train", "reduce",
        fmt::format(" is {}, which is between GPUs; the replicas on {} reduce on the host",
                    to_string(kind), replicas[0].device->name()));
  }
  return make_host_collective(all_ranks(options), sum_options(options, *replicas[0].engine));
}

// Returns how many floats a replica brings at once to those with which it synchronises its batch
// norms, at most. Returns 0 if there are no others.
int64_t most_norm_numbers(const TrainOptions& options, const NetSpec& net) {
  const int replicas = synchronised_replicas(options);
  if (replicas == 0) return 0;
  int64_t channels = 0;  // at most, of a batch norm
  for (const TensorInfo& info : statistics_table(net)) channels = std::max(channels, info.count);
  if (channels == 0) {
    throw InvalidField("train", "sync_batch_norm",
                       fmt::format(" is on, but {} has no batch norms", net.name));
  }
  return replicas > 1 ? 2 * channels : 0;
}

}  // namespace

ReplicaSet::ReplicaSet(const TrainOptions& options, const NetSpec& net, const ReplicaShape& shape,
                       const TrainProcesses& processes, const EngineFactory& make_engine) {
  EngineOptions engine = engine_options(options, shape);
  if (const int64_t most = most_norm_numbers(options, net); most > 0) {
    norms_ = std::make_unique<NormExchange>(options.replicas, shape.rows / shape.micro_batch_size,
                                            static_cast<size_t>(most));
    device_norms_ = std::make_unique<DeviceNormExchange>(options.replicas, most);
  }
  engine.norms = norms_.get();
  engine.device_norms = device_norms_.get();
  for (int i = 0; i < options.replicas; ++i) {
    engine.rank = i;
    if (make_engine) {
      replicas_.push_back({make_host_device(i), make_engine(net, engine, i)});
    } else {
      const std::string name = options.devices.empty() ? fmt::format("cpu:{}", i)  //
                                                       : options.devices[static_cast<size_t>(i)];
      replicas_.push_back(make_replica(name, net, engine));
    }
  }
  models_ = static_cast<size_t>(shape.local_models);
  if (wants_server(options.reduce)) {
    make_server(options, net, engine, processes, make_engine);
  } else {
    collective_ = make_collective(options, shape, replicas_);
  }
  plan_traffic(options, shape.all_replicas);
  if (options.bucket_bytes > 0 && shape.all_replicas > 1 && collective_->ranges()) {
    reduce_in_buckets(options.bucket_bytes);
  }
}

void ReplicaSet::make_server(const TrainOptions& options, const NetSpec& net,
                             const EngineOptions& replica, const TrainProcesses& processes,
                             const EngineFactory& make_engine) {
  require_server(options, replicas_);
  const EngineOptions engine = server_options(replica);
  Device& device = *replicas_[0].device;
  std::unique_ptr<Engine> weights;
  if (processes.is_rank0()) {
    weights = make_engine ? make_engine(net, engine, options.replicas)
                          : make_engine_on(device, net, engine);
  }
  if (replicas_[0].engine->stream()) {
    collective_ = push_to_device(options, replicas_, *weights);
    server_ = make_device_server(std::move(weights), device, engines());
  } else {
    collective_ = push_to_host(options, *replicas_[0].engine);
    server_ = make_host_server(
        std::move(weights), {.net = net, .replicas = options.replicas, .group = processes.group()});
  }
}

void ReplicaSet::abort(const std::string& reason) const noexcept {
  collective_->abort();
  if (norms_) norms_->abort(reason);
  if (device_norms_) device_norms_->abort(reason);
  if (server_) server_->abort();
}

Traffic ReplicaSet::traffic() const {
  Traffic traffic = collective_->traffic();
  if (server_) traffic += server_->traffic();
  return traffic;
}

void ReplicaSet::plan_traffic(const TrainOptions& options, int all_replicas) {
  if (!sends_gradients(options.reduce)) return;
  const Engine& engine = *replicas_[0].engine;
  const WireLayout layout(options.grad_wire, engine.gradient_floats(),
                          engine.gradient_buffer_floats());
  if (server_) {
    const auto buffers = options.grad_wire == GradWire::fp32 ? engine.gradient_buffers().size() : 1;
    planned_traffic_.gradients_sent = static_cast<int64_t>(buffers) * layout.bytes();
    planned_traffic_.weights_received = server_->pulled_bytes();
    return;
  }
  // To those who sum a share and back from them, or along a chain and back: 2 (N - 1) / N buffers.
  const int64_t bytes = 2 * (all_replicas - 1) * layout.bytes() / all_replicas;
  planned_traffic_ = {bytes, bytes, 0, 0};
}

// The sum of a bucket is queued as soon as the bucket is complete, and runs beside the rest of the
// backward pass. All replicas have the same net and therefore the same buckets.
void ReplicaSet::reduce_in_buckets(int64_t bucket_bytes) {
  for (size_t i = 0; i < replicas_.size(); ++i) {
    Engine* engine = replicas_[i].engine.get();
    Engine* const updated = &updated_by(i);
    in_buckets_ =
        engine->reduce_in_buckets(bucket_bytes, [engine, updated, rank = static_cast<int>(i),
                                                 to = collective_->ranges()](BufferRange range) {
          to->start(rank, engine->gradient_buffers(), updated->reduced_gradients(), range);
        });
  }
}

std::vector<Engine*> ReplicaSet::engines() const {
  std::vector<Engine*> list;
  for (const Replica& replica : replicas_) list.push_back(replica.engine.get());
  return list;
}

std::vector<Engine*> ReplicaSet::owners() const {
  std::vector<Engine*> list;
  for (size_t i = 0; i < models_; ++i) list.push_back(&updated_by(i));
  return list;
}

std::vector<Device*> ReplicaSet::devices() const {
  std::vector<Device*> list;
  for (const Replica& replica : replicas_) list.push_back(replica.device.get());
  return list;
}

}  // namespace stoker
