#include "train/collective/host_sum.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "train/collective/barrier.h"
#include "train/collective/process/process_group.h"
#include "train/collective/wire/collective.h"

namespace stoker {
namespace {

// Element ranges start at multiples of this, so that no two ranks write one cache line.
constexpr int64_t kHostRangeFloats = 16;
// Floats per accumulator: it and the same floats of a buffer fit into the first-level cache.
constexpr int64_t kHostBlockFloats = 1024;

[[noreturn]] void broken_sum(const char* what, int rank) {
  std::fprintf(stderr, "stoker: host collective: %s (rank %d)\n", what, rank);
  std::abort();
}

// Over the threads of one process: each sums a share of the elements into all results.
class ThreadSum final : public HostSum {
 public:
  ThreadSum(std::shared_ptr<Ranks> ranks, bool to_server)
      : HostSum(std::move(ranks)), to_server_(to_server) {}

  void all_reduce(int rank, std::span<const float* const> buffers,
                  std::span<float> result) override {
    begin(rank, buffers, result);
    const auto count = static_cast<int64_t>(result.size());
    const BufferRange own = share_of(count, rank, size(), kHostRangeFloats);
    std::array<float, kHostBlockFloats> sum;
    for (int64_t at = own.begin; at < own.end; at += kHostBlockFloats) {
      const int64_t block = std::min(kHostBlockFloats, own.end - at);
      add_own(at, block, true, sum.data());
      for (const Call& call : calls_) std::copy_n(sum.data(), block, call.result.data() + at);
    }
    if (rank == 0 && to_server_) count_pushed(buffers.size(), result);
    if (rank == 0 && !to_server_) traffic_ += chain_traffic(0, size(), size(), 4 * count);
    meet(rank);
  }

 private:
  const bool to_server_;
};

class NoCollective final : public Collective {
 public:
  explicit NoCollective(int size) : Collective(std::make_shared<Ranks>(size)) {}

  void all_reduce(int, std::span<const float* const> buffers, std::span<float> result) override {
    if (buffers.size() == 1 && buffers[0] == result.data()) return;
    for (size_t i = 0; i < result.size(); ++i) {
      float sum = buffers[0][i];
      for (size_t buffer = 1; buffer < buffers.size(); ++buffer) sum += buffers[buffer][i];
      result[i] = sum;
    }
  }
};

}  // namespace

Ranks::Ranks(int local, ProcessGroup* group)
    : group_(group != nullptr && group->size() > 1 ? group : nullptr),
      local_(local),
      first_(group_ != nullptr ? group->rank() * local : 0),
      size_(group_ != nullptr ? group->size() * local : local),
      barrier_(std::make_unique<Barrier>(local)),
      values_(static_cast<size_t>(std::max(local, 0))) {
  if (local < 1) {
    throw std::invalid_argument("collective: size " + std::to_string(local) + " is below 1");
  }
}

Ranks::~Ranks() = default;

void Ranks::meet(int rank) {
  if (rank < 0 || rank >= local_) broken_sum("rank out of range", rank);
  barrier_->wait();
}

void Ranks::barrier(int rank) {
  meet(rank);
  if (group_ == nullptr) return;
  if (rank == 0) all_reduce_max(*group_, 0);
  meet(rank);
}

void Ranks::broadcast(int rank, std::span<float> values, int root) {
  if (root < 0 || root >= size_) broken_sum("broadcast from a root that does not exist", rank);
  values_[static_cast<size_t>(rank)] = values;
  meet(rank);
  const bool own = root >= first_ && root < first_ + local_;
  const std::span<float> from = values_[static_cast<size_t>(own ? root - first_ : 0)];
  if (from.size() != values.size()) broken_sum("broadcast of different sizes", rank);
  if (group_ != nullptr) {
    if (rank == 0) stoker::broadcast(*group_, std::as_writable_bytes(from), root / local_);
    meet(rank);
  }
  if (from.data() != values.data()) std::copy(from.begin(), from.end(), values.begin());
  meet(rank);
}

void Ranks::abort() noexcept {
  if (group_ != nullptr) group_->abort("a replica failed");
  barrier_->abort("collective: aborted, because another replica failed");
}

void HostSum::begin(int rank, std::span<const float* const> buffers, std::span<float> result) {
  if (buffers.empty()) broken_sum("all_reduce without buffers", rank);
  calls_[static_cast<size_t>(rank)] = {buffers, result};
  meet(rank);
  for (const Call& call : calls_) {
    if (call.result.size() != result.size()) broken_sum("all_reduce of different sizes", rank);
  }
}

void HostSum::add_own(int64_t at, int64_t count, bool empty, float* sum) const {
  for (const Call& call : calls_) {
    for (const float* buffer : call.buffers) {
      const float* values = buffer + at;
      if (empty) {
        std::copy_n(values, count, sum);
      } else {
        for (int64_t i = 0; i < count; ++i) sum[i] += values[i];
      }
      empty = false;
    }
  }
}

void HostSum::share_result(int rank) {
  meet(rank);
  const std::span<float> from = calls_[0].result, to = calls_[static_cast<size_t>(rank)].result;
  if (from.data() != to.data()) std::copy(from.begin(), from.end(), to.begin());
  meet(rank);
}

void HostSum::count_pushed(size_t buffers, std::span<const float> result) {
  traffic_.gradients_sent += static_cast<int64_t>(calls_.size() * buffers * result.size_bytes());
}

std::unique_ptr<Collective> make_host_collective(std::shared_ptr<Ranks> ranks,
                                                 const SumOptions& options) {
  if (options.wire != GradWire::fp32) return make_wire_collective(std::move(ranks), options);
  if (ranks->group() != nullptr) return make_process_sum(std::move(ranks), options.to_server);
  return std::make_unique<ThreadSum>(std::move(ranks), options.to_server);
}

std::unique_ptr<Collective> make_no_collective(int size) {
  return std::make_unique<NoCollective>(size);
}

}  // namespace stoker
