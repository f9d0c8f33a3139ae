// Sums over replicas. One thread per rank; every rank makes the same calls in the same order.
// The sum of an all-reduce is taken part by part in (rank, part) order, element by element: the
// same bits for any timing and for any split of the same parts over ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace stoker {

class Collective {
 public:
  virtual ~Collective() = default;
  virtual int size() const = 0;
  // result = sum over ranks and parts. All parts and results have result.size() floats.
  virtual void all_reduce(int rank, std::span<const float* const> parts,
                          std::span<float> result) = 0;
  virtual void broadcast(int rank, std::span<float> values, int root) = 0;
  virtual void barrier(int rank) = 0;
  // Wakes every rank that waits; they and all later calls throw std::runtime_error. For failing
  // replicas.
  virtual void abort() noexcept = 0;
};

// Replicas that are threads of this process (size 1: no waiting at all).
std::unique_ptr<Collective> make_host_collective(int size);

}  // namespace stoker
