#include "train/collective/cuda/collective.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "pipeline/files/invalid_field.h"
#include "staging/device_list.h"
#include "staging/plugin.h"
#include "train/collective/cuda/plugin.h"

namespace stoker {
namespace {

const CudaCollectivePlugin& open_cuda_collective() {
  const Plugin plugin = open_plugin(kCudaCollectivePluginFile, kCudaCollectivePluginEntry);
  if (plugin.entry == nullptr) {
    throw std::runtime_error("cannot sum over GPUs: " + plugin.problem);
  }
  const auto* table = reinterpret_cast<CudaCollectivePluginEntry>(plugin.entry)();
  const std::string problem = other_build(kCudaCollectivePluginFile, {table->version, table->build},
                                          {kCudaCollectivePluginVersion, STOKER_BUILD_STAMP});
  if (!problem.empty()) throw std::runtime_error("cannot sum over GPUs: " + problem);
  return *table;
}

std::vector<int> ordinals_of(std::span<const DeviceReplica> replicas) {
  std::vector<int> ordinals;
  for (const DeviceReplica& replica : replicas) {
    ordinals.push_back(replica.device->cuda_ordinal());
    if (ordinals.back() < 0) {
      throw std::invalid_argument(replica.device->name() + " is no CUDA device; replicas on GPUs " +
                                  "and on CPUs cannot be mixed");
    }
  }
  if (ordinals.empty()) throw std::invalid_argument("a collective of no replicas");
  return ordinals;
}

std::unique_ptr<Collective> make_nccl(std::span<const DeviceReplica> replicas,
                                      const std::vector<int>& ordinals,
                                      const CudaCollectiveOptions& options) {
  ProcessGroup* const group = options.ranks->group();
  const int64_t bf16_floats = options.sum.wire == GradWire::bf16 ? options.sum.gradient_floats : 0;
  if (NcclGroup* const nccl = group != nullptr ? group->nccl() : nullptr) {
    if (ordinals.size() != 1 || ordinals[0] != nccl->cuda_ordinal()) {
      throw std::invalid_argument(
          "processes that speak through NCCL train one replica each, on the GPU they speak from");
    }
    return nccl->make_collective(replicas[0], bf16_floats, options.ranks);
  }
  if (best_reduction(ordinals, true) != ReduceKind::nccl) {
    throw std::invalid_argument(
        "NCCL wants a GPU of its own for every replica; replicas that share one reduce on the "
        "device");
  }
  const CudaCollectivePlugin& plugin = open_cuda_collective();
  NcclId id{};
  if (options.ranks->first() == 0) id = plugin.make_nccl_id();
  if (group != nullptr) broadcast(*group, id);
  return plugin.make_nccl(replicas, options.ranks, id, bf16_floats);
}

// Returns the best way that carries the gradients' format.
ReduceKind best_for_wire(ReduceKind best, GradWire wire) {
  const bool nccl_carries = wire == GradWire::fp32 || wire == GradWire::bf16;
  const bool carries = best == ReduceKind::nccl ? nccl_carries : wire == GradWire::fp32;
  return carries ? best : ReduceKind::host;
}

void require_wire(bool carried, const CudaCollectiveOptions& options, const char* why) {
  if (carried) return;
  throw InvalidField("train", "grad_wire",
                     std::string(" is ") + to_string(options.sum.wire) + ", but " + why +
                         "; all-reduce:host carries it");
}

}  // namespace

bool meets_through_nccl(const Launch& launch, const std::vector<std::string>& devices) {
  const bool without_mpi = launch.by == "torchrun" || launch.by == "srun";
  return launch.world > 1 && without_mpi && !launch.meeting_address.empty() &&
         std::ranges::all_of(devices, [](const auto& name) { return name.starts_with("cuda"); });
}

std::unique_ptr<ProcessGroup> open_nccl_group(const Launch& launch,
                                              const std::vector<std::string>& devices) {
  const std::string start = launch.by + " started " + std::to_string(launch.world) +
                            " processes, which meet through NCCL at " + launch.meeting_address;
  if (devices.size() != 1) {
    throw std::invalid_argument(start + " and have one GPU each: this one was given " +
                                std::to_string(devices.size()) +
                                "; start as many processes as GPUs (--devices cuda:all deals them "
                                "out), or several per process under mpirun");
  }
  try {
    const CudaCollectivePlugin& plugin = open_cuda_collective();
    const char* address = std::getenv("NCCL_COMM_ID");
    if (!address || launch.meeting_address != address) {
      setenv("NCCL_COMM_ID", launch.meeting_address.c_str(), 1);
    }
    return plugin.make_group(make_device(devices[0]), launch.rank, launch.world);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(start + ": " + error.what());
  }
}

std::unique_ptr<Collective> make_cuda_collective(std::span<const DeviceReplica> replicas,
                                                 CudaCollectiveOptions options) {
  const std::vector<int> ordinals = ordinals_of(replicas);
  if (!options.ranks) options.ranks = std::make_shared<Ranks>(static_cast<int>(replicas.size()));
  const bool several_processes = options.ranks->group() != nullptr;
  const ReduceKind best = best_reduction(ordinals, several_processes);
  const ReduceKind how =
      options.how == ReduceKind::automatic ? best_for_wire(best, options.sum.wire) : options.how;
  switch (how) {
    case ReduceKind::automatic:
    case ReduceKind::nccl:
      require_wire(!feeds_back(options.sum.wire), options, "NCCL sums in fp32 or bf16");
      return make_nccl(replicas, ordinals, options);
    case ReduceKind::device:
      require_wire(options.sum.wire == GradWire::fp32, options,
                   "replicas that share a GPU read one another's fp32 gradients");
      if (best != ReduceKind::device) {
        throw std::invalid_argument(
            "only replicas that share one GPU, in one process, can be summed on the device");
      }
      return make_device_collective(replicas, open_cuda_collective().make_sum(ordinals.front()));
    case ReduceKind::server:
    case ReduceKind::server_device:
      return make_device_collective(
          replicas, open_cuda_collective().make_sum(options.push.server.device->cuda_ordinal()),
          options.push);
    case ReduceKind::server_host:  // refused before: its weights lie in host memory
    case ReduceKind::independent:
    case ReduceKind::none:
      return make_no_collective(static_cast<int>(replicas.size()));
    case ReduceKind::host:
      break;
  }
  return make_staged_collective(replicas, make_host_collective(options.ranks, options.sum));
}

}  // namespace stoker
