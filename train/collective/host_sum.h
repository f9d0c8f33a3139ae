// Base class of sums in host memory: what the ranks of this process have brought. Internal to
// make_host_collective(). Threads and errors: see train/collective/collective.h.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "train/collective/collective.h"

namespace stoker {

class HostSum : public Collective {
 protected:
  struct Call {
    std::span<const float* const> buffers;
    std::span<float> result;
  };

  explicit HostSum(std::shared_ptr<Ranks> ranks)
      : Collective(std::move(ranks)), calls_(static_cast<size_t>(this->ranks()->local())) {}

  // Makes every rank's call visible to all ranks; aborts the program if their sizes differ.
  void begin(int rank, std::span<const float* const> buffers, std::span<float> result);
  void meet(int rank) { ranks()->meet(rank); }
  // Adds elements [at, at + count) of this process's buffers to `sum`, in order; without what was
  // there, if it is `empty`.
  void add_own(int64_t at, int64_t count, bool empty, float* sum) const;
  // Copies rank 0's result, which must be complete when rank 0 calls this, to the others.
  void share_result(int rank);
  // Counts what this process's replicas push to a server.
  void count_pushed(size_t buffers, std::span<const float> result);

  std::vector<Call> calls_;  // each rank writes its own before a meeting and reads all after it
};

// Over several processes and in fp32. REQUIRES: a MessageGroup, if the sum goes `to_server`.
std::unique_ptr<Collective> make_process_sum(std::shared_ptr<Ranks> ranks, bool to_server);

}  // namespace stoker
