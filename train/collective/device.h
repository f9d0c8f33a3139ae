// Sums over replicas whose engines queue their work on devices' streams: an all-reduce runs after
// the work that is already on a replica's stream, and work that is queued there later sees the sum.
// All are RangeCollectives, which communicate on a separate stream on each replica's device.
// broadcast() and barrier() work on host memory, as in the host collectives. The bits are those of
// make_host_collective(), with or without ranges. Threads and errors: see
// train/collective/collective.h; also the devices' errors.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "staging/device.h"
#include "train/collective/collective.h"
#include "train/collective/reduce_kind.h"

namespace stoker {

// Both must outlive the collective; the stream is the engine's. Ranks count from 0 in this process.
struct DeviceReplica {
  Device* device = nullptr;
  Stream* stream = nullptr;
};

// One rank's share of a sum: elements [begin, end) of all buffers are added in order and written
// into all results. A result may be one of the buffers.
struct BufferSum {
  static constexpr int kMaxBuffers = 128;
  static constexpr int kMaxResults = 16;
  std::array<const float*, kMaxBuffers> buffers{};
  std::array<float*, kMaxResults> results{};
  int buffer_count = 0;
  int result_count = 0;
  int64_t begin = 0;
  int64_t end = 0;
};
using SumKernel = std::function<void(Stream& stream, const BufferSum& sum)>;  // queues the sum

// Sums on the CPU: buffers are copied to pinned host memory, `inner` sums them there, and the sum
// is copied back. This is done in pieces: one is summed while the next is still being copied.
// finish() blocks until the last piece is summed. `inner` has the same ranks, in one process or
// several.
std::unique_ptr<Collective> make_staged_collective(std::span<const DeviceReplica> replicas,
                                                   std::unique_ptr<Collective> inner,
                                                   int64_t piece_bytes = int64_t{8} << 20);

// A parameter server on a device, to which replicas push.
struct PushTarget {
  DeviceReplica server;  // its device, and the stream on which it updates
  int buffers = 1;       // of each replica
  int64_t floats = 0;    // of each buffer
};

// Sums on one device with `kernel`. Without a server all replicas share the device, and each rank's
// stream sums a range of the elements. A server gets all of the sum: all ranks pass its buffer as
// their result, which work sees that is queued on its stream after finish(). Buffers of replicas on
// another device (by its name) are copied to the server's.
std::unique_ptr<Collective> make_device_collective(
    std::span<const DeviceReplica> replicas, SumKernel kernel,
    const std::optional<PushTarget>& server = std::nullopt);

// Returns what `automatic` means for replicas on these devices (Device::cuda_ordinal()).
ReduceKind best_reduction(std::span<const int> ordinals, bool several_processes);

// The same sum as the CUDA kernel, for host devices: queued on a stream, or done now.
void sum_buffers_on_host(Stream& stream, const BufferSum& sum);
void sum_buffers_now(const BufferSum& sum);

}  // namespace stoker
