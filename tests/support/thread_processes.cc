#include "tests/support/thread_processes.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

namespace stoker {
namespace {

// (std::ranges::equal reads byte by byte, and ThreadSanitizer checks each read.)
bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

}  // namespace

// A message is copied when it is sent, because the memory of a sender that fails may be freed at
// any time. When the sender waits, the memory must still be the same: a change that is too early is
// detected.
struct ThreadProcesses::Shared {
  struct Message {
    std::vector<std::byte> bytes;
    bool taken = false;
  };
  explicit Shared(int size_in) : size(size_in) {}
  const int size;
  std::mutex mutex;  // guards the following members
  std::condition_variable changed;
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<Message>>> channels;  // (from, to)
  std::string failure;
};

class ThreadProcesses::Group final : public MessageGroup {
 public:
  Group(Shared& shared, int rank) : shared_(shared), rank_(rank) {}
  ~Group() override {
    if (!finished_) abort("it left before the end");
  }

  int rank() const override { return rank_; }
  int size() const override { return shared_.size; }

  Ticket send(int to, std::span<const std::byte> bytes) override {
    const std::lock_guard lock(shared_.mutex);
    auto message = std::make_shared<Shared::Message>();
    message->bytes.assign(bytes.begin(), bytes.end());
    shared_.channels[{rank_, to}].push_back(message);
    shared_.changed.notify_all();
    waits_[next_] = {message, bytes, -1, false};
    return next_++;
  }

  Ticket receive(int from, std::span<std::byte> bytes) override {
    const std::lock_guard lock(shared_.mutex);
    waits_[next_] = {nullptr, {}, from, false};
    posted_[from].push_back({next_, bytes});
    return next_++;
  }

  void wait(Ticket ticket) override {
    std::unique_lock lock(shared_.mutex);
    const auto found = waits_.find(ticket);
    if (found == waits_.end()) throw std::logic_error("waited twice for one ticket");
    const Wait& wait = found->second;
    const auto ready = [&] {
      if (wait.message) return wait.message->taken;
      deliver(wait.from);
      return wait.received;
    };
    shared_.changed.wait(lock, [&] { return ready() || !shared_.failure.empty(); });
    if (!ready()) throw std::runtime_error(shared_.failure);
    if (wait.message && !same_bytes(wait.source, wait.message->bytes)) {
      throw std::logic_error("a message was changed before its sender waited for it");
    }
    waits_.erase(found);
  }

  void abort(const std::string& why) noexcept override {
    const std::lock_guard lock(shared_.mutex);
    if (!shared_.failure.empty()) return;
    shared_.failure = "process " + std::to_string(rank_) + " failed: " + why;
    shared_.changed.notify_all();
  }

  void finish() override { finished_ = true; }

 private:
  struct Wait {
    std::shared_ptr<Shared::Message> message;  // for a send,
    std::span<const std::byte> source;         // and its source
    int from = -1;                             // for a receive
    bool received = false;
  };
  struct Receive {
    Ticket ticket = 0;
    std::span<std::byte> target;
  };

  // Takes the messages that are there, in the order of the receives, whichever is waited for: as
  // MPI does it. REQUIRES: the lock.
  void deliver(int from) {
    auto& channel = shared_.channels[{from, rank_}];
    auto& posted = posted_[from];
    while (!channel.empty() && !posted.empty()) {
      Shared::Message& message = *channel.front();
      const Receive receive = posted.front();
      if (message.bytes.size() != receive.target.size()) {
        throw std::logic_error("a message of another size than its receive");
      }
      std::copy(message.bytes.begin(), message.bytes.end(), receive.target.begin());
      message.taken = true;
      waits_.at(receive.ticket).received = true;
      channel.pop_front();
      posted.pop_front();
      shared_.changed.notify_all();
    }
  }

  Shared& shared_;
  const int rank_;
  bool finished_ = false;
  Ticket next_ = 0;
  std::map<Ticket, Wait> waits_;
  std::map<int, std::deque<Receive>> posted_;  // receives without a message, by sender
};

// Gathers when the result is requested, as late as possible, after those that were started before
// it; detects a rank that changes its bytes before.
class ThreadProcesses::WithoutMessages final : public ProcessGroup {
 public:
  explicit WithoutMessages(ProcessGroup& group) : group_(group) {}
  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  void broadcast(std::span<std::byte> bytes, int root) override { group_.broadcast(bytes, root); }
  Ticket start_all_gather(std::span<const std::byte> own, std::span<std::byte> all) override {
    under_way_[next_] = {own, {own.begin(), own.end()}, all};
    return next_++;
  }
  void end_all_gather(Ticket ticket) override {
    while (!under_way_.empty() && under_way_.begin()->first <= ticket) {
      const Gather gather = under_way_.extract(under_way_.begin()).mapped();
      if (!same_bytes(gather.own, gather.copy)) {
        throw std::logic_error("bytes were changed before their gather ended");
      }
      group_.end_all_gather(group_.start_all_gather(gather.copy, gather.all));
    }
  }
  void abort(const std::string& why) noexcept override { group_.abort(why); }
  void finish() override { group_.finish(); }

 private:
  struct Gather {
    std::span<const std::byte> own;
    std::vector<std::byte> copy;
    std::span<std::byte> all;
  };
  ProcessGroup& group_;
  std::map<Ticket, Gather> under_way_;
  Ticket next_ = 0;
};

ThreadProcesses::ThreadProcesses(int size) : shared_(std::make_unique<Shared>(size)) {}

ThreadProcesses::~ThreadProcesses() = default;

std::vector<std::string> ThreadProcesses::run(const std::function<void(ProcessGroup&)>& body,
                                              bool messages) {
  std::vector<std::string> thrown(static_cast<size_t>(shared_->size));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < shared_->size; ++rank) {
    threads.emplace_back([this, rank, messages, &body, &thrown] {
      Group group(*shared_, rank);
      WithoutMessages plain(group);
      try {
        body(messages ? static_cast<ProcessGroup&>(group) : plain);
        group.finish();
      } catch (const std::exception& error) {
        thrown[rank] = error.what();
        group.abort(error.what());
      }
    });
  }
  threads.clear();
  return thrown;
}

}  // namespace stoker
