// Where synchronised batch norms (torch.nn.SyncBatchNorm) of the replicas of one process meet. In
// the forward pass each replica brings the mean and the variance of its own rows, in the backward
// pass the sums of its own rows, and each gets those of all replicas. Micro-batch k of a replica
// meets micro-batch k of all others, layer by layer.
//
// No replica waits for ever, with any number of threads each, as long as every replica takes its
// micro-batches in ascending order and as long as each of them has the same ones. Let k be the
// lowest micro-batch that some replica has not ended. In a replica that has not begun it, all
// lower ones have ended and no higher one has begun, so its threads are idle and one of them takes
// k. So k runs in all replicas that have not ended it, and it waits for nobody but them.
//
// Owner: ReplicaSet; it outlives the engines. Threads: those of all replicas at the same time. The
// calls for one micro-batch of one rank are made one after the other. Nothing depends on timing.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace stoker {

class NormExchange {
 public:
  struct Place {
    int rank = 0, micro_batch = 0;
    int step = 0;  // a number for each layer and pass, the same in all ranks
  };

  // `most` is the largest number of floats that a rank brings at once. REQUIRES: ranks >= 1.
  NormExchange(int ranks, int micro_batches, size_t most);
  ~NormExchange();
  NormExchange(const NormExchange&) = delete;
  NormExchange& operator=(const NormExchange&) = delete;

  int ranks() const { return ranks_; }

  // Brings the floats of all spans of `own`, and returns those of all ranks, rank by rank. Blocks
  // until all ranks have called it for this micro-batch. The result is valid until the rank's next
  // call for this micro-batch. Throws std::runtime_error after abort(), and aborts the program if
  // ranks meet in different steps or with different numbers of floats.
  std::span<const float> gather(const Place& place,
                                std::initializer_list<std::span<const float>> own);

  // Wakes every waiting thread; these and all later calls of gather() throw std::runtime_error with
  // this reason. For a replica that fails.
  void abort(const std::string& reason) noexcept;

 private:
  class Meeting;

  const int ranks_;
  std::vector<std::unique_ptr<Meeting>> meetings_;  // by micro-batch
};

// Computes the mean and the biased variance of the rows of all ranks, of which `gathered` has the
// ranks' own, the means before the variances. All ranks have as many rows, so this is the mean of
// the means, and the mean of the variances and of the squared distances of the means (Chan, Golub,
// LeVeque 1979, "Updating formulae and a pairwise algorithm for computing sample variances").
void unite_statistics(std::span<const float> gathered, int ranks, std::span<float> mean,
                      std::span<float> variance);
// Adds up the ranks' numbers in the order of the ranks; `to` are as many as a rank has brought.
void add_up(std::span<const float> gathered, int ranks, std::initializer_list<std::span<float>> to);

}  // namespace stoker
