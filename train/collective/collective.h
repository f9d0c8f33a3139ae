// Sums over replicas. One thread per rank; every rank makes the same calls in the same order. Ranks
// are counted within the process. With several processes, each has the same number of ranks, and
// sums go process by process. Every rank has one or more gradient buffers. An all-reduce adds all
// of them in (rank, buffer) order, element by element: the same bits for any timing and for any
// distribution of the same buffers over ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "train/collective/traffic.h"

namespace stoker {

class ProcessGroup;
class RangeCollective;
class WireState;

struct BufferRange {  // elements [begin, end) of a buffer
  int64_t begin = 0, end = 0;
};

class Collective {
 public:
  virtual ~Collective() = default;
  virtual int size() const = 0;  // number of replicas in all processes
  // result = sum over ranks and buffers. All buffers and results have result.size() floats. A
  // rank's result may be its only buffer.
  virtual void all_reduce(int rank, std::span<const float* const> buffers,
                          std::span<float> result) = 0;
  // Copies root's values to all ranks; `root` counts over all processes.
  virtual void broadcast(int rank, std::span<float> values, int root) = 0;
  virtual void barrier(int rank) = 0;
  // Wakes every waiting rank; these and all later calls throw std::runtime_error. For a replica
  // that fails.
  virtual void abort() noexcept = 0;
  // Returns this object if it can sum ranges of a buffer while the rest is still being computed,
  // else null.
  virtual RangeCollective* ranges() { return nullptr; }
  // Returns what sums remember from step to step, or null: nothing.
  virtual WireState* wire() { return nullptr; }
  // The bytes of all replicas of this process together, since the start. Only for rank 0's thread.
  virtual Traffic traffic() const = 0;
};

// What was lost when gradients were sent, and is still to be added (train/collective/wire). Saved
// with the weights: first the residuals of all replicas of all processes, by rank, then that of
// their sum; residual_floats() each. Threads: one in each process, while no sum runs.
class WireState {
 public:
  virtual ~WireState() = default;
  virtual int64_t residual_floats() const = 0;  // 0: this wire keeps nothing
  // All processes call it; returns the residuals in process 0, and anything in the others.
  virtual std::vector<float> residuals() = 0;
  // The next sum is that of `step`. `residuals` are of all processes, or empty: nothing was lost.
  virtual void restore(int64_t step, std::span<const float> residuals) = 0;
};

// An all-reduce in ranges, for replicas whose engines queue their work on streams: gradients are
// summed while the backward pass runs. Every rank starts the same ranges in the same order.
class RangeCollective : public Collective {
 public:
  // Sums a range of the buffers into the same range of the result. The sum runs after the work that
  // is on the replica's stream now, and in parallel to work that is queued there later, which must
  // not touch the range until finish().
  virtual void start(int rank, std::span<const float* const> buffers, std::span<float> result,
                     BufferRange range) = 0;
  // Makes work that is queued on the replica's stream from now on wait for all started sums.
  virtual void finish(int rank) = 0;

  void all_reduce(int rank, std::span<const float* const> buffers, std::span<float> result) final {
    start(rank, buffers, result, {0, static_cast<int64_t>(result.size())});
    finish(rank);
  }
  RangeCollective* ranges() final { return this; }
};

// For replicas that are threads of this process (size 1: no waiting at all).
std::unique_ptr<Collective> make_host_collective(int size);

// For `local` replicas that are threads of this process, and as many in every other process of
// `group`. `group` must outlive the collective; in a call only rank 0's thread uses it. The bits
// are those of make_host_collective() with all replicas in one process.
std::unique_ptr<Collective> make_process_collective(ProcessGroup& group, int local);

// For `size` replicas in this process that sum only their own buffers: a single replica, or a
// measurement of the cost of communication (the replicas then train different models). Does not
// touch a result that is also the only buffer, so that may be in device memory.
std::unique_ptr<Collective> make_no_collective(int size);

}  // namespace stoker
