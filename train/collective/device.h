// Sums over replicas whose engines queue their work on devices' streams: an all-reduce is ordered
// behind what a replica's stream holds, and what is queued there later sees the sum. All are
// RangeCollectives: what travels has a stream of its own on each replica's device. broadcast() and
// barrier() are about host memory, as those of the host's collectives. The same bits as
// make_host_collective(), in ranges or not. Threads and errors: see train/collective/collective.h;
// also the devices' own.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "staging/device.h"
#include "train/collective/collective.h"

namespace stoker {

// Both outlive the collective; the stream is the engine's. Ranks count from 0 in this process.
struct DeviceReplica {
  Device* device = nullptr;
  Stream* stream = nullptr;
};

// The part of a sum that one rank does: elements [begin, end) of all parts, in order, into all
// results. A result may be one of the parts.
struct PartSum {
  static constexpr int kMostParts = 128;
  static constexpr int kMostResults = 16;
  std::array<const float*, kMostParts> parts{};
  std::array<float*, kMostResults> results{};
  int part_count = 0;
  int result_count = 0;
  int64_t begin = 0;
  int64_t end = 0;
};
using SumKernel = std::function<void(Stream& stream, const PartSum& sum)>;  // queues it

// On the CPU ("parameter server"): parts go to pinned host memory, `inner` sums them there, the sum
// goes back. In pieces: one is summed while the next is still on its way. finish() blocks until the
// last is summed. `inner` is of the same ranks, in one process or several.
std::unique_ptr<Collective> make_staged_collective(std::span<const DeviceReplica> replicas,
                                                   std::unique_ptr<Collective> inner,
                                                   int64_t piece_bytes = int64_t{8} << 20);

// On one device that all replicas share: each rank's stream sums a range of the elements with
// `kernel`. No thread waits for the device, streams wait for each other's events.
std::unique_ptr<Collective> make_shared_device_collective(std::span<const DeviceReplica> replicas,
                                                          SumKernel kernel);

// For host devices, and the twin of the CUDA kernel.
void sum_parts_on_host(Stream& stream, const PartSum& sum);
void sum_parts_now(const PartSum& sum);

}  // namespace stoker
