#include "train/run/replica_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "pipeline/files/invalid_field.h"
#include "train/collective/cuda/collective.h"
#include "train/collective/push.h"
#include "train/collective/wire/collective.h"
#include "train/collective/wire/layout.h"
#include "train/run/options.h"

namespace stoker {
namespace {

// Makes a collective in host memory, over all processes, for gradients in fp32.
std::unique_ptr<Collective> on_host(const TrainOptions& options) {
  if (options.processes) return make_process_collective(*options.processes, options.replicas);
  return make_host_collective(options.replicas);
}

// Makes a collective in host memory, over all processes, for gradients in the chosen format.
std::unique_ptr<Collective> carrier(const TrainOptions& options, const Engine& engine) {
  if (options.grad_wire == GradWire::fp32) return on_host(options);
  return make_wire_collective(options.processes, options.replicas,
                              {.wire = options.grad_wire,
                               .gradient_floats = engine.gradient_floats(),
                               .buffer_floats = engine.gradient_buffer_floats(),
                               .seed = options.seed});
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
                                            const TrainProcesses& processes,
                                            const std::vector<Replica>& replicas) {
  const Engine& engine = *replicas[0].engine;
  const std::vector<DeviceReplica> devices = device_replicas(replicas);
  if (!on_gpus(options.devices)) return make_staged_collective(devices, carrier(options, engine));
  CudaCollectiveOptions cuda;
  cuda.how = options.reduce;
  cuda.wire = options.grad_wire;
  cuda.gradient_floats = engine.gradient_floats();
  cuda.host = on_host(options);
  cuda.make_carrier = [&] { return carrier(options, engine); };
  cuda.first_rank = processes.rank() * options.replicas;
  if (ProcessGroup* group = options.processes; group && group->nccl()) {
    cuda.group = group->nccl();
  } else if (group) {
    cuda.share = [group](std::span<std::byte> bytes) { broadcast(*group, bytes); };
  }
  return make_cuda_collective(devices, std::move(cuda));
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
  ProcessGroup* const group = options.processes;
  if (options.grad_wire == GradWire::fp32) {
    return make_push_collective(group ? group->messages() : nullptr, options.replicas);
  }
  return make_wire_collective(group, options.replicas,
                              {.wire = options.grad_wire,
                               .gradient_floats = replica.gradient_floats(),
                               .buffer_floats = replica.gradient_buffer_floats(),
                               .seed = options.seed,
                               .to_server = true});
}

// Makes a collective whose sum stays with the server on the first replica's device.
std::unique_ptr<Collective> push_to_device(const TrainOptions& options,
                                           const std::vector<Replica>& replicas, Engine& server) {
  const Engine& engine = *replicas[0].engine;
  const PushTarget target{.server = {replicas[0].device.get(), server.stream()},
                          .buffers = static_cast<int>(engine.gradient_buffers().size()),
                          .floats = engine.gradient_buffer_floats()};
  const std::vector<DeviceReplica> devices = device_replicas(replicas);
  if (!on_gpus(options.devices)) return make_push_to_device(target, devices, sum_buffers_on_host);
  CudaCollectiveOptions cuda;
  cuda.how = ReduceKind::server_device;
  cuda.push = target;
  return make_cuda_collective(devices, std::move(cuda));
}

std::unique_ptr<Collective> make_collective(const TrainOptions& options, const ReplicaShape& shape,
                                            const TrainProcesses& processes,
                                            const std::vector<Replica>& replicas) {
  const ReduceKind kind = options.reduce;
  if (!sends_gradients(kind)) return make_no_collective(options.replicas);
  if (shape.all_replicas == 1 && options.grad_wire != GradWire::fp32) {
    throw InvalidField("train", "grad_wire",
                       fmt::format(" is {}, but a single replica sends no gradients",
                                   to_string(options.grad_wire)));
  }
  if (replicas[0].engine->stream()) {
    return shape.all_replicas == 1 ? make_no_collective(1)
                                   : between_devices(options, processes, replicas);
  }
  if (kind == ReduceKind::nccl || kind == ReduceKind::device) {
    throw InvalidField(
        "train", "reduce",
        fmt::format(" is {}, which is between GPUs; the replicas on {} reduce on the host",
                    to_string(kind), replicas[0].device->name()));
  }
  return carrier(options, *replicas[0].engine);
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
  independent_ = options.reduce == ReduceKind::independent;
  if (wants_server(options.reduce)) {
    make_server(options, net, engine, processes, make_engine);
  } else {
    collective_ = make_collective(options, shape, processes, replicas_);
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

std::vector<Engine*> ReplicaSet::keepers() const {
  return independent_ ? engines() : std::vector{&keeper()};
}

std::vector<Device*> ReplicaSet::devices() const {
  std::vector<Device*> list;
  for (const Replica& replica : replicas_) list.push_back(replica.device.get());
  return list;
}

}  // namespace stoker
