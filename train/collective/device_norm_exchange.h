// Where synchronised batch norms of replicas meet whose engines queue their work on streams of
// devices; norm_exchange.h says what they exchange. On one device, a replica's stream writes the
// numbers of its own rows into memory that all replicas' streams read. Between devices the numbers
// go through pinned memory of the host: each stream copies its own there, and then those of all to
// its device, two copies for any number of devices. The threads meet on the host once per layer and
// pass, so that every stream knows the others' events; no thread waits for a device, and a pass
// that meets cannot be captured.
//
// Owner: ReplicaSet. The exchange is destroyed before the streams and the devices, and waits for
// the work on the streams, which may still read its memory; engines do not use it any more then.
// Threads: one for each rank; abort() from any. Errors: those of the device, and std::runtime_error
// after abort().
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "train/collective/barrier.h"
#include "train/collective/device.h"

namespace stoker {

class DeviceNormExchange {
 public:
  // `most` is the largest number of floats that a rank brings at once. REQUIRES: ranks >= 1.
  DeviceNormExchange(int ranks, int64_t most);
  ~DeviceNormExchange();
  DeviceNormExchange(const DeviceNormExchange&) = delete;
  DeviceNormExchange& operator=(const DeviceNormExchange&) = delete;

  int ranks() const { return static_cast<int>(ranks_.size()); }

  // Says where a rank queues its work. One thread joins every rank once, before the first of them
  // meets; the last one allocates the memory. Devices of one name are one device.
  void join(int rank, const DeviceReplica& replica);
  // Returns whether the ranks are on several devices. REQUIRES: all have joined.
  bool through_host() const { return between_ != nullptr; }

  // Returns where work that the rank queues next writes `count` floats, for its next meet(). Until
  // then it is the same place, which nobody reads: what turns out to be of no use may stay there.
  float* place(int rank, int64_t count);
  // In memory of a rank's device: the floats of all ranks, `stride` from one rank's to the next's.
  struct Numbers {
    const float* floats = nullptr;
    int64_t stride = 0;
  };
  // Returns what work that this rank queues up to its next meet() may read. Blocks until all ranks
  // have called it; nobody waits for ever if all take the same layers of the same micro-batches in
  // one order, one after the other. `step` is a number for each layer and pass, the same in all
  // ranks. Aborts the program if ranks meet in different steps or with different numbers of floats.
  Numbers meet(int rank, int step);

  // Wakes every waiting thread; these and all later calls of meet() throw std::runtime_error with
  // this reason. For a replica that fails.
  void abort(const std::string& reason) noexcept { barrier_.abort(reason); }

 private:
  // Rounds use two halves of the memory that ranks share and two events of each rank in turn. A
  // rank that comes to round r + 2 has met all others in round r + 1. So their streams' events of
  // round r + 1, for which its own stream waits, come after their work that reads the memory of
  // round r; and every rank has waited for the events of round r before any is recorded again.
  static constexpr size_t kRounds = 2;
  struct Part {
    int step = 0;
    int64_t count = 0;
    bool operator==(const Part&) const = default;
  };
  struct Rank {
    DeviceReplica replica;
    // On several devices: its own numbers, then those of all. Its stream alone uses it, in order.
    std::unique_ptr<Memory> memory;
    uint64_t rounds = 0;  // that this rank has ended
    std::array<Part, kRounds> parts;
    std::array<std::unique_ptr<Event>, kRounds> written;
  };

  void allocate();
  float* shared(Memory& memory, uint64_t round) const;
  [[noreturn]] void broken(const char* what, int rank) const;

  const int64_t most_;
  Barrier barrier_;
  // (rounds, ranks * most): on the device that all ranks share, or else on the host.
  std::unique_ptr<Memory> on_device_, between_;
  int joined_ = 0;
  std::vector<Rank> ranks_;  // each thread writes its own, and reads all after the barrier
};

}  // namespace stoker
