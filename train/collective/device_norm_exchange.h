// Where synchronised batch norms of replicas meet whose engines queue their work on streams of one
// device; norm_exchange.h says what they exchange. A replica's stream writes the numbers of its own
// rows into memory that all replicas' streams read. The threads meet on the host once per layer and
// pass, so that every stream knows the others' events; no thread waits for the device, and a pass
// that meets cannot be captured.
//
// No replica waits for ever as long as all of them take the same layers of the same micro-batches
// in one order: each queues one micro-batch after the other. On the device, a stream waits only for
// work that was queued before.
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
  int64_t stride() const { return most_; }  // floats from a rank's numbers to the next one's

  // Says where a rank queues its work. One thread joins all ranks before the first of them meets;
  // the first one's device has the memory.
  void join(int rank, const DeviceReplica& replica);

  // Returns where work that the rank queues next writes `count` floats, for its next meet(). Until
  // then it is the same place, which nobody reads: what turns out to be of no use may stay there.
  float* place(int rank, int64_t count);
  // Returns the floats of all ranks, rank by rank, which work that this rank queues up to its next
  // meet() may read. Blocks until all ranks have called it. `step` is a number for each layer and
  // pass, the same in all ranks. Aborts the program if ranks meet in different steps or with
  // different numbers of floats.
  const float* meet(int rank, int step);

  // Wakes every waiting thread; these and all later calls of meet() throw std::runtime_error with
  // this reason. For a replica that fails.
  void abort(const std::string& reason) noexcept { barrier_.abort(reason); }

 private:
  // Rounds use two memories and two events of each rank in turn. A rank that comes to round r + 2
  // has met all others in round r + 1. So their streams' events of round r + 1, for which its own
  // stream waits, come after their work that reads the memory of round r; and every rank has
  // waited for the events of round r before any of them is recorded again.
  static constexpr size_t kRounds = 2;
  struct Part {
    int step = 0;
    int64_t count = 0;
    bool operator==(const Part&) const = default;
  };
  struct Rank {
    Stream* stream = nullptr;
    uint64_t rounds = 0;  // that this rank has ended
    std::array<Part, kRounds> parts;
    std::array<std::unique_ptr<Event>, kRounds> written;
  };

  float* floats_of(uint64_t round) const;
  [[noreturn]] void broken(const char* what, int rank) const;

  const int64_t most_;
  Barrier barrier_;
  std::unique_ptr<Memory> memory_;  // (rounds, ranks * most)
  std::vector<Rank> ranks_;         // each thread writes its own, and reads all after the barrier
};

}  // namespace stoker
