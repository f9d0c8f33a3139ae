// Sums over the replicas of several processes in fp32, in the order of one process: gradient buffer
// after gradient buffer, process after process.
#include <array>
#include <optional>

#include "train/collective/host_sum.h"
#include "train/collective/process/process_group.h"

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

// Sums in that order form a chain: process 0 adds up its buffers, process 1 continues from there,
// and the last process has the total, which goes back the same way. Each element passes each link
// once in each direction, and no buffer leaves its process. The elements are sent in chunks, so
// that all processes work at the same time.
class ChainSum final : public HostSum {
 public:
  ChainSum(std::shared_ptr<Ranks> ranks, MessageGroup& group)
      : HostSum(std::move(ranks)), group_(group), buffers_(kChainBuffers * kChunkFloats) {}

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
      traffic_ += chain_traffic(ranks()->first(), ranks()->local(), size(),
                                static_cast<int64_t>(result.size_bytes()));
    }
    share_result(rank);
  }

 private:
  // Computes this rank's share of the chunk's elements: the sum so far plus the buffers of all
  // local ranks.
  void add_parts(int rank, const Chain& chain, int64_t chunk) {
    const std::span<float> so_far = chain.buffer(chunk);
    const std::span<float> target = chain.last() ? chain.result(chunk) : so_far;
    const BufferRange own =
        share_of(static_cast<int64_t>(so_far.size()), rank, ranks()->local(), 1);
    std::array<float, kChainBlockFloats> sum;
    for (int64_t at = own.begin; at < own.end; at += kChainBlockFloats) {
      const int64_t block = std::min(kChainBlockFloats, own.end - at);
      if (!chain.is_rank0()) std::copy_n(so_far.data() + at, block, sum.data());
      add_own(chunk * kChunkFloats + at, block, chain.is_rank0(), sum.data());
      std::copy_n(sum.data(), block, target.data() + at);
    }
  }

  MessageGroup& group_;
  std::vector<float> buffers_;
  std::optional<Chain> chain_;  // of the current all-reduce; made by rank 0 before a meeting
};

// For processes that cannot send messages to one another, but communicate through NCCL: each gets
// all buffers of all, and adds them up. It is slower than a chain.
class GatherSum final : public HostSum {
 public:
  explicit GatherSum(std::shared_ptr<Ranks> ranks) : HostSum(std::move(ranks)) {}

  void all_reduce(int rank, std::span<const float* const> buffers,
                  std::span<float> result) override {
    begin(rank, buffers, result);
    if (rank == 0) {
      sum(result);
      // Every buffer of a replica goes to all other replicas.
      const auto bytes = static_cast<int64_t>(own_.size() * sizeof(float)) * (size() - 1);
      traffic_ += {bytes, bytes, 0, 0};
    }
    share_result(rank);
  }

 private:
  void sum(std::span<float> result) {
    const size_t count = result.size();
    own_.clear();
    for (const Call& call : calls_) {
      for (const float* buffer : call.buffers) own_.insert(own_.end(), buffer, buffer + count);
    }
    ProcessGroup& group = *ranks()->group();
    all_.resize(own_.size() * static_cast<size_t>(group.size()));
    group.end_all_gather(group.start_all_gather(std::as_bytes(std::span(own_)),
                                                std::as_writable_bytes(std::span(all_))));
    std::copy_n(all_.begin(), count, result.begin());
    for (size_t begin = count; begin < all_.size(); begin += count) {
      for (size_t i = 0; i < count; ++i) result[i] += all_[begin + i];
    }
  }

  std::vector<float> own_, all_;  // rank 0's
};

// Every buffer goes to the parameter server's process, because the sum's order needs it; the server
// keeps two of them at a time.
class PushSum final : public HostSum {
 public:
  PushSum(std::shared_ptr<Ranks> ranks, MessageGroup& group)
      : HostSum(std::move(ranks)), group_(group) {}

  void all_reduce(int rank, std::span<const float* const> buffers,
                  std::span<float> result) override {
    begin(rank, buffers, result);
    if (group_.rank() == 0) {
      const BufferRange own = own_share(rank, result.size());
      add_own(own.begin, own.end - own.begin, true, result.data() + own.begin);
      add_others(rank, buffers.size(), result);
    } else {
      if (rank == 0) send_own(result.size());
      meet(rank);
    }
    if (rank == 0) count_pushed(buffers.size(), result);
  }

 private:
  using Tickets = std::vector<ProcessGroup::Ticket>;
  static constexpr int64_t kCacheLineFloats = 16;
  static constexpr size_t kPieceFloats = size_t{16} << 20;  // of a message

  BufferRange own_share(int rank, size_t floats) const {
    return share_of(static_cast<int64_t>(floats), rank, ranks()->local(), kCacheLineFloats);
  }

  // While all ranks add one buffer, the next one is received.
  void add_others(int rank, size_t buffers, std::span<float> result) {
    const size_t each = buffers * calls_.size();
    const size_t all = each * static_cast<size_t>(group_.size() - 1);
    const BufferRange range = own_share(rank, result.size());
    Tickets receives[2];
    const auto receive = [&](size_t index) {
      std::vector<float>& to = received_[index % 2];
      to.resize(result.size());
      receives[index % 2] = in_pieces(std::span(to), [&](std::span<float> piece) {
        return group_.receive(1 + static_cast<int>(index / each), std::as_writable_bytes(piece));
      });
    };
    if (rank == 0) receive(0);
    for (size_t index = 0; index < all; ++index) {
      if (rank == 0) {
        if (index + 1 < all) receive(index + 1);
        for (const auto ticket : receives[index % 2]) group_.wait(ticket);
      }
      meet(rank);
      const float* const from = received_[index % 2].data();
      for (int64_t i = range.begin; i < range.end; ++i) result[i] += from[i];
      meet(rank);
    }
  }

  void send_own(size_t floats) {
    Tickets sends;
    for (const Call& call : calls_) {
      for (const float* buffer : call.buffers) {
        const Tickets more = in_pieces(
            std::span(buffer, floats),
            [&](std::span<const float> piece) { return group_.send(0, std::as_bytes(piece)); });
        sends.insert(sends.end(), more.begin(), more.end());
      }
    }
    for (const auto ticket : sends) group_.wait(ticket);
  }

  // A message has less than 2 GiB.
  template <typename Float, typename Start>
  static Tickets in_pieces(std::span<Float> floats, Start start) {
    Tickets tickets;
    for (size_t at = 0; at < floats.size(); at += kPieceFloats) {
      tickets.push_back(start(floats.subspan(at, std::min(kPieceFloats, floats.size() - at))));
    }
    return tickets;
  }

  MessageGroup& group_;
  std::array<std::vector<float>, 2> received_;  // buffers of other processes; rank 0 receives them
};

}  // namespace

std::unique_ptr<Collective> make_process_sum(std::shared_ptr<Ranks> ranks, bool to_server) {
  MessageGroup* const messages = ranks->group()->messages();
  if (messages == nullptr) return std::make_unique<GatherSum>(std::move(ranks));
  if (to_server) return std::make_unique<PushSum>(std::move(ranks), *messages);
  return std::make_unique<ChainSum>(std::move(ranks), *messages);
}

}  // namespace stoker
