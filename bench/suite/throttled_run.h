// Runs steps of data-parallel training on throttled devices: batches from real rings through real
// stagers, computing that is a sleep, and gradients that are summed while the rest of the backward
// pass "runs": through the host's memory by the trainer's own collective, or by a ring of copies
// (DeviceRing). Threads: one per device, and each device's feed; run_throttled() blocks.
#pragma once

#include <barrier>
#include <memory>
#include <span>
#include <vector>

#include "bench/suite/link_machine.h"
#include "bench/suite/schedule_simulation.h"
#include "staging/batch_layout.h"
#include "train/collective/collective.h"
#include "train/collective/device.h"

namespace stoker {

// The measurements, as SchedulePrediction says it.
struct ThrottledResult {
  double images_per_second = 0;
  double gap_seconds = 0;
  std::vector<LinkLoad> links;  // bytes per step; `busy` is not measured
};

// Runs options.warmup and then options.steps steps on the machine's first GPUs. `shape` is that of
// each device's own part of the batch. REQUIRES: what predict_schedule() requires; options.reduce
// is nccl (a ring of copies), host or none, options.wire fp32, options.slice host or each_device.
ThrottledResult run_throttled(const LinkMachine& machine, const TrainingWork& work,
                              const BatchShape& shape, const ScheduleOptions& options);

// Sums over devices by a ring of copies between them, the algorithm of NCCL's ring (Patarasuk and
// Yuan, Bandwidth optimal all-reduce algorithms, 2009): in n - 1 turns every device passes a part
// of the sum on, and in n - 1 more the finished parts. It is there to measure such a ring on host
// devices, where NCCL does not run; the trainer does not use it. The order of a sum differs from
// element to element.
//
// Threads: one per rank; every rank starts the same ranges in the same order. Owner: the bench; the
// devices and streams outlive it. Errors: std::invalid_argument without a device.
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
