#include "train/collective/wire/exchange.h"

#include <algorithm>

namespace stoker {
namespace {

class InOneProcess final : public WireExchange {
 public:
  explicit InOneProcess(const WireBuffers& buffers) : buffers_(buffers) {}
  void swap() override {}
  const std::byte* at(int sender, int64_t block) const override {
    return buffers_.own[static_cast<size_t>(sender)].data() + buffers_.layout->byte_of(block);
  }
  void spread() override {}

 private:
  const WireBuffers& buffers_;
};

// Bytes of the blocks that a process sums.
struct WireRange {
  size_t begin = 0, end = 0;
  size_t size() const { return end - begin; }
  template <typename Byte>
  std::span<Byte> of(std::span<Byte> bytes) const {
    return bytes.subspan(begin, size());
  }
};

class BetweenProcesses : public WireExchange {
 public:
  BetweenProcesses(const WireBuffers& buffers, ProcessGroup& group)
      : buffers_(buffers), processes_(group.size()), rank_(group.rank()) {}

 protected:
  int local() const { return static_cast<int>(buffers_.own.size()); }
  WireRange share_of(int process) const {
    const WireLayout& layout = *buffers_.layout;
    const auto byte = [&](int p) {
      const int64_t all = p == 0 ? 0 : layout.blocks();
      return static_cast<size_t>(
          layout.byte_of(buffers_.first_sums_all ? all : layout.share_of(p, processes_)));
    };
    return {byte(process), byte(process + 1)};
  }
  size_t offset_in_share(int64_t block) const {
    return static_cast<size_t>(buffers_.layout->byte_of(block)) - share_of(rank_).begin;
  }

  const WireBuffers& buffers_;
  const int processes_, rank_;
};

// Every process sends each other process only what that one sums.
class ByMessages final : public BetweenProcesses {
 public:
  ByMessages(const WireBuffers& buffers, MessageGroup& group)
      : BetweenProcesses(buffers, group),
        group_(group),
        received_(share_of(rank_).size() * static_cast<size_t>(processes_ * local())) {}

  void swap() override {
    for_others([&](int other) {
      for (int i = 0; i < local(); ++i) receive(other, from(other * local() + i));
      const WireRange theirs = share_of(other);
      for (const auto& own : buffers_.own) send(other, theirs.of(own));
    });
    wait();
  }

  const std::byte* at(int sender, int64_t block) const override {
    const size_t offset = offset_in_share(block);
    if (sender / local() != rank_) {
      return received_.data() + static_cast<size_t>(sender) * share_of(rank_).size() + offset;
    }
    return share_of(rank_).of(buffers_.own[static_cast<size_t>(sender % local())]).data() + offset;
  }

  void spread() override {
    for_others([&](int other) {
      receive(other, share_of(other).of(buffers_.sum));
      send(other, share_of(rank_).of(buffers_.sum));
    });
    wait();
  }

 private:
  template <typename Function>
  void for_others(Function function) {
    for (int step = 1; step < processes_; ++step) function((rank_ + step) % processes_);
  }
  std::span<std::byte> from(int sender) {
    const size_t size = share_of(rank_).size();
    return std::span(received_).subspan(static_cast<size_t>(sender) * size, size);
  }
  void receive(int other, std::span<std::byte> bytes) {
    if (!bytes.empty()) receives_.push_back(group_.receive(other, bytes));
  }
  void send(int other, std::span<const std::byte> bytes) {
    if (!bytes.empty()) sends_.push_back(group_.send(other, bytes));
  }
  // Receives come first: a send may end only when the other process has taken it.
  void wait() {
    for (std::vector<ProcessGroup::Ticket>* tickets : {&receives_, &sends_}) {
      for (const auto ticket : *tickets) group_.wait(ticket);
      tickets->clear();
    }
  }

  MessageGroup& group_;
  std::vector<std::byte> received_;  // this process's share of all replicas' buffers, by rank
  std::vector<ProcessGroup::Ticket> receives_, sends_;
};

// Processes that cannot send messages get whole buffers of all, and use their share of them.
class ByGathers final : public BetweenProcesses {
 public:
  ByGathers(const WireBuffers& buffers, ProcessGroup& group)
      : BetweenProcesses(buffers, group), group_(group) {
    for (int process = 0; process < processes_; ++process) {
      most_ = std::max(most_, share_of(process).size());
    }
  }

  void swap() override {
    sent_.clear();
    for (const auto& own : buffers_.own) sent_.insert(sent_.end(), own.begin(), own.end());
    gather();
  }

  const std::byte* at(int sender, int64_t block) const override {
    const auto bytes = static_cast<size_t>(buffers_.layout->bytes());
    return gathered_.data() + static_cast<size_t>(sender) * bytes +
           static_cast<size_t>(buffers_.layout->byte_of(block));
  }

  void spread() override {
    const auto own = share_of(rank_).of(buffers_.sum);
    sent_.assign(own.begin(), own.end());
    sent_.resize(most_);
    gather();
    for (int process = 0; process < processes_; ++process) {
      const auto to = share_of(process).of(buffers_.sum);
      std::copy_n(gathered_.begin() + static_cast<int64_t>(process * most_), to.size(), to.begin());
    }
  }

 private:
  void gather() {
    gathered_.resize(sent_.size() * static_cast<size_t>(processes_));
    group_.end_all_gather(group_.start_all_gather(sent_, gathered_));
  }

  ProcessGroup& group_;
  size_t most_ = 0;  // bytes of the largest share
  std::vector<std::byte> sent_, gathered_;
};

}  // namespace

std::unique_ptr<WireExchange> make_wire_exchange(const WireBuffers& buffers, ProcessGroup* group) {
  if (group == nullptr) return std::make_unique<InOneProcess>(buffers);
  if (MessageGroup* messages = group->messages()) {
    return std::make_unique<ByMessages>(buffers, *messages);
  }
  return std::make_unique<ByGathers>(buffers, *group);
}

}  // namespace stoker
