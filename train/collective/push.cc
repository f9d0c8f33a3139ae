#include "train/collective/push.h"

#include <algorithm>
#include <array>
#include <vector>

#include "train/collective/joined.h"
#include "train/collective/share.h"

namespace stoker {
namespace {

constexpr int64_t kPushMultiple = 16;              // floats of a cache line
constexpr size_t kPieceFloats = size_t{16} << 20;  // of a message

Traffic pushed(int replicas, size_t buffers, std::span<const float> result) {
  Traffic traffic;
  traffic.gradients_sent =
      static_cast<int64_t>(static_cast<size_t>(replicas) * buffers * result.size_bytes());
  return traffic;
}

class PushInOneProcess final : public Collective {
 public:
  explicit PushInOneProcess(int size) : host_(make_host_collective(size)) {}

  int size() const override { return host_->size(); }
  void all_reduce(int rank, std::span<const float* const> buffers,
                  std::span<float> result) override {
    host_->all_reduce(rank, buffers, result);
    if (rank == 0) traffic_ += pushed(size(), buffers.size(), result);
  }
  void broadcast(int rank, std::span<float> values, int root) override {
    host_->broadcast(rank, values, root);
  }
  void barrier(int rank) override { host_->barrier(rank); }
  void abort() noexcept override { host_->abort(); }
  Traffic traffic() const override { return traffic_; }

 private:
  const std::unique_ptr<Collective> host_;
  Traffic traffic_;  // rank 0's
};

class PushToFirstProcess final : public JoinedCollective {
 public:
  PushToFirstProcess(MessageGroup& group, int local)
      : JoinedCollective(group, local), group_(group) {}

  void all_reduce(int rank, std::span<const float* const> buffers,
                  std::span<float> result) override {
    begin(rank, buffers, result);
    if (group_.rank() == 0) {
      add_own(rank, result);
      add_others(rank, buffers.size(), result);
    } else {
      if (rank == 0) send_own(result.size());
      meet(rank);
    }
    if (rank == 0) count(pushed(local(), buffers.size(), result));
  }

 private:
  using Tickets = std::vector<ProcessGroup::Ticket>;

  // The elements that this rank sums.
  BufferRange own_share(int rank, size_t floats) const {
    const auto count = static_cast<int64_t>(floats);
    return {share_begin(count, rank, local(), kPushMultiple),
            share_begin(count, rank + 1, local(), kPushMultiple)};
  }

  void add_own(int rank, std::span<float> result) {
    const BufferRange range = own_share(rank, result.size());
    bool first = true;
    for (const Call& call : calls()) {
      for (const float* buffer : call.buffers) {
        if (first) std::copy(buffer + range.begin, buffer + range.end, result.data() + range.begin);
        if (!first) add(buffer, range, result);
        first = false;
      }
    }
  }

  // While all ranks add one buffer, the next one is received.
  void add_others(int rank, size_t buffers, std::span<float> result) {
    const size_t each = buffers * static_cast<size_t>(local());
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
      add(received_[index % 2].data(), range, result);
      meet(rank);
    }
  }

  void send_own(size_t floats) {
    Tickets sends;
    for (const Call& call : calls()) {
      for (const float* buffer : call.buffers) {
        const Tickets more = in_pieces(
            std::span(buffer, floats),
            [&](std::span<const float> piece) { return group_.send(0, std::as_bytes(piece)); });
        sends.insert(sends.end(), more.begin(), more.end());
      }
    }
    for (const auto ticket : sends) group_.wait(ticket);
  }

  static void add(const float* buffer, BufferRange range, std::span<float> result) {
    float* const sum = result.data();
    for (int64_t i = range.begin; i < range.end; ++i) sum[i] += buffer[i];
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

std::unique_ptr<Collective> make_push_collective(MessageGroup* group, int local) {
  if (!group || group->size() == 1) return std::make_unique<PushInOneProcess>(local);
  return std::make_unique<PushToFirstProcess>(*group, local);
}

}  // namespace stoker
