// Sums over the replicas of several processes, in the order of train/collective/host.cc: gradient
// buffer after gradient buffer, process after process. Sums in that order form a chain: process 0
// adds up its buffers, process 1 continues from there, and the last process has the total, which
// goes back the same way. Each element passes each link once in each direction, and no buffer
// leaves its process. The elements are sent in chunks, so that all processes work at the same time.
#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "train/collective/gathering.h"
#include "train/collective/joined.h"

namespace stoker {
namespace {

constexpr int64_t kChunkFloats = 128 << 10;
constexpr int kChainBuffers = 4;  // chunks from the start of their receive to the end of their send
constexpr int kAhead = 2;         // of these: chunks that are received in advance
constexpr int64_t kChainBlockFloats = 1024;  // per accumulator, in the first-level cache

// The messages of one all-reduce, received and sent by the thread of local rank 0.
class Chain {
 public:
  Chain(MessageGroup& group, std::span<float> buffers, std::span<float> result)
      : group_(group),
        buffers_(buffers),
        result_(result),
        chunks_((static_cast<int64_t>(result.size()) + kChunkFloats - 1) / kChunkFloats),
        lag_(2 * (group.size() - 1 - group.rank()) + 2) {
    if (is_rank0()) return;
    for (int64_t chunk = 0; chunk < std::min<int64_t>(chunks_, kAhead); ++chunk) {
      prefixes_.push_back(group_.receive(group_.rank() - 1, bytes(buffer(chunk))));
    }
  }

  int64_t chunks() const { return chunks_; }
  bool is_rank0() const { return group_.rank() == 0; }
  bool last() const { return group_.rank() == group_.size() - 1; }
  std::span<float> result(int64_t chunk) const { return cut(result_, chunk, chunk); }
  // Holds the sum of the processes before, later including this one.
  std::span<float> buffer(int64_t chunk) const {
    return cut(buffers_, chunk % kChainBuffers, chunk);
  }

  // Waits until the chunk's buffer holds the sum of the processes before; in process 0, until it is
  // free.
  void begin(int64_t chunk) {
    if (!is_rank0()) {
      group_.wait(prefixes_[chunk]);
    } else if (chunk >= kChainBuffers) {
      group_.wait(onward_[chunk - kChainBuffers]);
    }
  }

  // Sends the sum including this process's gradients. It is in the chunk's buffer; in the last
  // process, in the result.
  void end(int64_t chunk) {
    if (last()) {
      back_.push_back(group_.send(group_.rank() - 1, bytes(result(chunk))));
    } else {
      onward_.push_back(group_.send(group_.rank() + 1, bytes(buffer(chunk))));
      totals_.push_back(group_.receive(group_.rank() + 1, bytes(result(chunk))));
      // By now the total of an earlier chunk should be returning.
      if (!is_rank0() && chunk >= lag_) pass_back(chunk - lag_);
    }
    const int64_t next = chunk + kAhead;
    if (is_rank0() || next >= chunks_) return;
    if (!last() && next >= kChainBuffers) group_.wait(onward_[next - kChainBuffers]);
    prefixes_.push_back(group_.receive(group_.rank() - 1, bytes(buffer(next))));
  }

  void finish() {
    if (!last()) {
      const int64_t from = is_rank0() ? 0 : std::max<int64_t>(chunks_ - lag_, 0);
      for (int64_t chunk = from; chunk < chunks_; ++chunk) pass_back(chunk);
      for (int64_t chunk = std::max<int64_t>(chunks_ - kChainBuffers, 0); chunk < chunks_;
           ++chunk) {
        group_.wait(onward_[chunk]);
      }
    }
    for (const auto ticket : back_) group_.wait(ticket);
  }

 private:
  std::span<float> cut(std::span<float> floats, int64_t place, int64_t chunk) const {
    const auto left = static_cast<int64_t>(result_.size()) - chunk * kChunkFloats;
    return floats.subspan(static_cast<size_t>(place * kChunkFloats),
                          static_cast<size_t>(std::min(left, kChunkFloats)));
  }
  static std::span<std::byte> bytes(std::span<float> floats) {
    return std::as_writable_bytes(floats);
  }
  void pass_back(int64_t chunk) {
    group_.wait(totals_[chunk]);
    if (!is_rank0()) back_.push_back(group_.send(group_.rank() - 1, bytes(result(chunk))));
  }

  MessageGroup& group_;
  const std::span<float> buffers_, result_;
  const int64_t chunks_;
  const int64_t lag_;
  std::vector<ProcessGroup::Ticket> prefixes_, onward_, totals_, back_;  // by chunk
};

class ProcessCollective final : public JoinedCollective {
 public:
  ProcessCollective(MessageGroup& group, int local)
      : JoinedCollective(group, local), group_(group), buffers_(kChainBuffers * kChunkFloats) {}

  void all_reduce(int rank, std::span<const float* const> buffers,
                  std::span<float> result) override {
    if (rank == 0) chain_.emplace(group_, buffers_, result);
    begin(rank, buffers, result);
    Chain& chain = *chain_;
    for (int64_t chunk = 0; chunk < chain.chunks(); ++chunk) {
      if (rank == 0) chain.begin(chunk);
      meet(rank);
      add_parts(rank, chain, chunk);
      meet(rank);
      if (rank == 0) chain.end(chunk);
    }
    if (rank == 0) {
      chain.finish();
      count(
          chain_traffic(first_rank(), local(), size(), static_cast<int64_t>(result.size_bytes())));
    }
    share_result(rank);
  }

 private:
  // Computes this rank's share of the chunk's elements: the sum so far plus the buffers of all
  // local ranks.
  void add_parts(int rank, const Chain& chain, int64_t chunk) {
    const std::span<float> so_far = chain.buffer(chunk);
    const std::span<float> target = chain.last() ? chain.result(chunk) : so_far;
    const auto count = static_cast<int64_t>(so_far.size());
    const int64_t end = count * (rank + 1) / local();
    std::array<float, kChainBlockFloats> sum;
    for (int64_t at = count * rank / local(); at < end; at += kChainBlockFloats) {
      const int64_t block = std::min(kChainBlockFloats, end - at);
      bool empty = chain.is_rank0();
      if (!empty) std::copy_n(so_far.data() + at, block, sum.data());
      for (const Call& call : calls()) {
        for (const float* buffer : call.buffers) {
          const float* values = buffer + chunk * kChunkFloats + at;
          if (empty) {
            std::copy_n(values, block, sum.data());
          } else {
            for (int64_t i = 0; i < block; ++i) sum[i] += values[i];
          }
          empty = false;
        }
      }
      std::copy_n(sum.data(), block, target.data() + at);
    }
  }

  MessageGroup& group_;
  std::vector<float> buffers_;
  std::optional<Chain> chain_;  // of the current all-reduce; made by rank 0 before a barrier
};

}  // namespace

std::unique_ptr<Collective> make_process_collective(ProcessGroup& group, int local) {
  if (group.size() == 1) return make_host_collective(local);
  if (MessageGroup* messages = group.messages()) {
    return std::make_unique<ProcessCollective>(*messages, local);
  }
  return make_gathering_collective(group, local);
}

}  // namespace stoker
