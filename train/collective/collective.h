// Sums over replicas, composed from three choices: who takes part (Ranks), how gradients are coded
// (SumOptions), and where buffers and sum lie: in host memory (make_host_collective()) or on
// devices (device.h, cuda/collective.h). One thread per rank; every rank makes the same calls in
// the same order, and has one or more gradient buffers. An all-reduce adds all of them in (rank,
// buffer) order, element by element: the same bits for any timing and for any distribution of the
// same buffers over ranks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "train/collective/traffic.h"
#include "train/collective/wire/grad_wire.h"

namespace stoker {

class Barrier;
class ProcessGroup;
class RangeCollective;
class WireState;

struct BufferRange {  // elements [begin, end) of a buffer
  int64_t begin = 0, end = 0;
};

// Returns which of `count` elements `rank` of `size` sums. Shares begin at multiples of `multiple`,
// so that they hold whole cache lines or blocks.
inline BufferRange share_of(int64_t count, int rank, int size, int64_t multiple) {
  const auto begin = [&](int of) {
    return of == size ? count : std::min(count, count * of / size / multiple * multiple);
  };
  return {begin(rank), begin(rank + 1)};
}

// Who takes part: `local` threads of this process, and as many of every other process of `group`,
// which must outlive it. Ranks count from 0 within the process in all calls; with several processes
// sums go process by process, and only rank 0's thread uses the group. Virtual for the CUDA plugin.
class Ranks {
 public:
  // Throws std::invalid_argument if `local` is below 1. `group` may be null: there are no others.
  explicit Ranks(int local, ProcessGroup* group = nullptr);
  virtual ~Ranks();

  int local() const { return local_; }
  int first() const { return first_; }            // of this process, among all
  int size() const { return size_; }              // of all processes
  ProcessGroup* group() const { return group_; }  // null: a single process

  void meet(int rank);             // the threads of this process
  virtual void barrier(int rank);  // all ranks
  // Copies root's values to all ranks; `root` counts over all processes.
  virtual void broadcast(int rank, std::span<float> values, int root);
  // Wakes every waiting rank; these and all later calls throw std::runtime_error. For a replica
  // that fails.
  virtual void abort() noexcept;

 private:
  ProcessGroup* const group_;
  const int local_, first_, size_;
  const std::unique_ptr<Barrier> barrier_;
  std::vector<std::span<float>> values_;  // each rank writes its own and reads all after a meeting
};

class Collective {
 public:
  virtual ~Collective() = default;
  int size() const { return who_->size(); }
  const std::shared_ptr<Ranks>& ranks() const { return who_; }
  // result = sum over ranks and buffers. All buffers and results have result.size() floats. A
  // rank's result may be its first buffer.
  virtual void all_reduce(int rank, std::span<const float* const> buffers,
                          std::span<float> result) = 0;
  // As Ranks has them, in host memory.
  void broadcast(int rank, std::span<float> values, int root) {
    who_->broadcast(rank, values, root);
  }
  void barrier(int rank) { who_->barrier(rank); }
  virtual void abort() noexcept { who_->abort(); }
  // Returns this object if it can sum ranges of a buffer while the rest is still being computed,
  // else null.
  virtual RangeCollective* ranges() { return nullptr; }
  // Returns what sums remember from step to step, or null: nothing.
  virtual WireState* wire() { return nullptr; }
  // The bytes of all replicas of this process together, since the start. Only for rank 0's thread.
  virtual Traffic traffic() const { return traffic_; }

 protected:
  explicit Collective(std::shared_ptr<Ranks> ranks) : who_(std::move(ranks)) {}
  Traffic traffic_;  // rank 0's

 private:
  const std::shared_ptr<Ranks> who_;
};

// Losses of gradients that were sent, which are still to be added (train/collective/wire). Saved
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

 protected:
  using Collective::Collective;
};

// How gradients are coded, and who gets the sum.
struct SumOptions {
  GradWire wire = GradWire::fp32;
  int64_t gradient_floats = 0;  // of a buffer that travel in `wire`: what follows is fp32
  int64_t buffer_floats = 0;    // size of every buffer and result
  uint64_t seed = 0;            // of the stochastic rounding
  // A parameter server, in the first process, keeps the sum: replicas there all pass its buffer as
  // their result, and those of other processes are left alone.
  bool to_server = false;
};

// Sums in host memory. With fp32 the bits are those of a single process with the same buffers.
std::unique_ptr<Collective> make_host_collective(std::shared_ptr<Ranks> ranks,
                                                 const SumOptions& options = {});
inline std::unique_ptr<Collective> make_host_collective(int size) {
  return make_host_collective(std::make_shared<Ranks>(size));
}
[[deprecated("take make_host_collective() with Ranks")]] inline std::unique_ptr<Collective>
make_process_collective(ProcessGroup& group, int local) {
  return make_host_collective(std::make_shared<Ranks>(local, &group));
}

// For `size` replicas in this process that sum only their own buffers: a single replica, or a
// measurement of the cost of communication (the replicas then train different models). Does not
// touch a result that is also the only buffer, so that may be in device memory.
std::unique_ptr<Collective> make_no_collective(int size);

}  // namespace stoker
