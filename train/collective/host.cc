#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "train/collective/barrier.h"
#include "train/collective/collective.h"
#include "train/collective/share.h"

namespace stoker {
namespace {

// Element ranges start at multiples of this, so that no two ranks write one cache line.
constexpr int64_t kHostRangeFloats = 16;
// Floats per accumulator: it and the same floats of a buffer fit into the first-level cache.
constexpr int64_t kHostBlockFloats = 1024;

[[noreturn]] void broken_host(const char* what, int rank) {
  std::fprintf(stderr, "stoker: host collective: %s (rank %d)\n", what, rank);
  std::abort();
}

class HostCollective final : public Collective {
 public:
  explicit HostCollective(int size)
      : size_(size), calls_(static_cast<size_t>(size)), barrier_(size) {
    if (size < 1) {
      throw std::invalid_argument("collective: size " + std::to_string(size) + " is below 1");
    }
  }

  int size() const override { return size_; }

  void all_reduce(int rank, std::span<const float* const> buffers,
                  std::span<float> result) override {
    if (buffers.empty()) broken_host("all_reduce without buffers", rank);
    calls_[rank] = {buffers, result};
    wait(rank);
    for (const Call& call : calls_) {
      if (call.result.size() != result.size()) broken_host("all_reduce of different sizes", rank);
    }
    const auto count = static_cast<int64_t>(result.size());
    sum_range(share_begin(count, rank, size_, kHostRangeFloats),
              share_begin(count, rank + 1, size_, kHostRangeFloats));
    if (rank == 0) traffic_ += chain_traffic(0, size_, size_, 4 * count);
    wait(rank);
  }

  void broadcast(int rank, std::span<float> values, int root) override {
    if (root < 0 || root >= size_) broken_host("broadcast from a root that does not exist", rank);
    calls_[rank] = {{}, values};
    wait(rank);
    const std::span<const float> from = calls_[root].result;
    if (from.size() != values.size()) broken_host("broadcast of different sizes", rank);
    if (rank != root) std::copy(from.begin(), from.end(), values.begin());
    wait(rank);
  }

  void barrier(int rank) override { wait(rank); }

  Traffic traffic() const override { return traffic_; }

  void abort() noexcept override {
    barrier_.abort("collective: aborted, because another replica failed");
  }

 private:
  struct Call {
    std::span<const float* const> buffers;
    std::span<float> result;
  };

  // Writes the sum of [begin, end) into every rank's result.
  void sum_range(int64_t begin, int64_t end) {
    std::array<float, kHostBlockFloats> sum;
    for (int64_t at = begin; at < end; at += kHostBlockFloats) {
      const int64_t count = std::min(kHostBlockFloats, end - at);
      bool first = true;
      for (const Call& call : calls_) {
        for (const float* buffer : call.buffers) {
          const float* values = buffer + at;
          if (first) {
            std::copy_n(values, count, sum.data());
          } else {
            for (int64_t i = 0; i < count; ++i) sum[i] += values[i];
          }
          first = false;
        }
      }
      for (const Call& call : calls_) std::copy_n(sum.data(), count, call.result.data() + at);
    }
  }

  void wait(int rank) {
    if (rank < 0 || rank >= size_) broken_host("rank out of range", rank);
    barrier_.wait();
  }

  const int size_;
  std::vector<Call> calls_;  // each rank writes its own before a wait and reads all after it
  Traffic traffic_;          // rank 0's
  Barrier barrier_;
};

}  // namespace

std::unique_ptr<Collective> make_host_collective(int size) {
  return std::make_unique<HostCollective>(size);
}

}  // namespace stoker
