// Sums over devices by a ring of copies between them, the algorithm of NCCL's ring (Patarasuk and
// Yuan, Bandwidth optimal all-reduce algorithms, 2009): in n - 1 turns every device passes a part
// of the sum on, and in n - 1 more the finished parts. It is there to measure such a ring on host
// devices, where NCCL does not run; the trainer does not use it. The order of a sum differs from
// element to element.
//
// Threads: one per rank; every rank starts the same ranges in the same order. Owner: the bench; the
// devices and streams outlive it. Errors: std::invalid_argument without a device.
#pragma once

#include <barrier>
#include <memory>
#include <span>
#include <vector>

#include "train/collective/collective.h"
#include "train/collective/device.h"

namespace stoker {

class DeviceRing {
 public:
  // Results and gradients have at most `floats` numbers.
  DeviceRing(std::span<const DeviceReplica> replicas, int64_t floats);

  // Sums a range of all ranks' gradients into the same range of their results, in device memory,
  // after the work that is on the replica's stream now. Waits for the other ranks' calls, not for
  // devices.
  void start(int rank, const float* gradients, float* result, BufferRange range);
  // Makes work that is queued on the replica's stream from now on wait for all started sums.
  void finish(int rank);

 private:
  struct Rank {
    DeviceReplica replica;
    std::unique_ptr<Memory> inbox;             // what the rank before sends
    std::unique_ptr<Event> given, done;        // on the replica's stream, on `stream`
    std::vector<std::unique_ptr<Event>> sent;  // per turn
    const float* gradients = nullptr;          // of the present range, as `result`
    float* result = nullptr;
    std::unique_ptr<Stream> stream;  // destroyed first
  };

  void queue(BufferRange range);
  BufferRange part(BufferRange range, int index) const;
  Rank& after(int rank) { return ranks_[(rank + 1) % std::ssize(ranks_)]; }

  std::vector<Rank> ranks_;
  std::barrier<> meet_;
};

}  // namespace stoker
