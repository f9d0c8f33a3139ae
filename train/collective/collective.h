// Sums over replicas. One thread per rank; every rank makes the same calls in the same order. Ranks
// are counted within the process; over several, sums go process by process, each of which has as
// many ranks.
// The sum of an all-reduce is taken part by part in (rank, part) order, element by element: the
// same bits for any timing and for any split of the same parts over ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace stoker {

class ProcessGroup;
class RangeCollective;

struct PartRange {  // elements [begin, end) of a part
  int64_t begin = 0, end = 0;
};

class Collective {
 public:
  virtual ~Collective() = default;
  virtual int size() const = 0;  // replicas, in all processes
  // result = sum over ranks and parts. All parts and results have result.size() floats.
  virtual void all_reduce(int rank, std::span<const float* const> parts,
                          std::span<float> result) = 0;
  // `root` counts over all processes.
  virtual void broadcast(int rank, std::span<float> values, int root) = 0;
  virtual void barrier(int rank) = 0;
  // Wakes every rank that waits; they and all later calls throw std::runtime_error. For failing
  // replicas.
  virtual void abort() noexcept = 0;
  // This one, where it can sum a part in ranges beside the work that computes the rest; else null.
  virtual RangeCollective* ranges() { return nullptr; }
};

// An all-reduce in pieces, of replicas whose engines queue their work on streams: gradients are
// summed while the backward pass runs. Every rank starts the same ranges in the same order.
class RangeCollective : public Collective {
 public:
  // Sums a range of the parts into the same range of the result, behind what the replica's stream
  // holds now and beside what is queued there later, which must leave the range alone until
  // finish().
  virtual void start(int rank, std::span<const float* const> parts, std::span<float> result,
                     PartRange range) = 0;
  // What is queued on the replica's stream from now on sees the sums of all that was started.
  virtual void finish(int rank) = 0;

  void all_reduce(int rank, std::span<const float* const> parts, std::span<float> result) final {
    start(rank, parts, result, {0, static_cast<int64_t>(result.size())});
    finish(rank);
  }
  RangeCollective* ranges() final { return this; }
};

// Replicas that are threads of this process (size 1: no waiting at all).
std::unique_ptr<Collective> make_host_collective(int size);

// `local` replicas that are threads of this process, and as many in every other one of `group`,
// which outlives it and which only rank 0's thread uses in a call. The bits are those of
// make_host_collective() with all replicas in one process.
std::unique_ptr<Collective> make_process_collective(ProcessGroup& group, int local);

// `size` replicas in this process that keep to their own parts: one alone, or to measure what
// communication costs (what they train is then not one model). Leaves a result alone that is its
// only part, wherever its memory is.
std::unique_ptr<Collective> make_no_collective(int size);

}  // namespace stoker
