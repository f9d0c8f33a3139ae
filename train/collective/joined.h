// Base class of sums over the replicas of several processes: a barrier of the threads, a broadcast,
// and the copy of a result from rank 0's thread to the others. Only rank 0's thread uses the group.
// Threads and errors: see train/collective/collective.h.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "train/collective/collective.h"
#include "train/collective/process/process_group.h"

namespace stoker {

class JoinedCollective : public Collective {
 public:
  int size() const final { return group_.size() * local_; }
  void broadcast(int rank, std::span<float> values, int root) final;
  void barrier(int rank) final;
  void abort() noexcept final;
  Traffic traffic() const final { return traffic_; }

 protected:
  struct Call {
    std::span<const float* const> buffers;
    std::span<float> result;
  };

  JoinedCollective(ProcessGroup& group, int local);

  void meet(int rank) { here_->barrier(rank); }
  // Makes every rank's call visible to all ranks; aborts if their sizes differ.
  void begin(int rank, std::span<const float* const> buffers, std::span<float> result);
  // Copies rank 0's result, which must be complete when rank 0 calls this, to the others.
  void share_result(int rank) { share(rank, calls_[0].result, calls_[rank].result); }

  int local() const { return local_; }
  int first_rank() const { return group_.rank() * local_; }
  void count(const Traffic& more) { traffic_ += more; }  // in rank 0's thread
  const std::vector<Call>& calls() const { return calls_; }

 private:
  void share(int rank, std::span<const float> from, std::span<float> to);

  ProcessGroup& group_;
  const int local_;
  const std::unique_ptr<Collective> here_;
  std::vector<Call> calls_;  // each rank writes its own before a barrier and reads all after it
  Traffic traffic_;          // rank 0's
};

}  // namespace stoker
