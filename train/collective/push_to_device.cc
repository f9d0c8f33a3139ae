#include <stdexcept>
#include <string>
#include <vector>

#include "train/collective/device.h"

namespace stoker {
namespace {

class PushToDevice final : public RangeCollective {
 public:
  PushToDevice(const PushTarget& target, std::span<const DeviceReplica> replicas, SumKernel kernel)
      : target_(target),
        kernel_(std::move(kernel)),
        host_(make_host_collective(static_cast<int>(replicas.size()))),
        summed_(target.server.device->make_event()) {
    const size_t all = replicas.size() * static_cast<size_t>(target.buffers);
    if (target.buffers < 1 || all > static_cast<size_t>(BufferSum::kMaxBuffers)) {
      throw std::invalid_argument("parameter server: " + std::to_string(replicas.size()) +
                                  " replicas with " + std::to_string(target.buffers) +
                                  " gradient buffers each; it sums at most " +
                                  std::to_string(BufferSum::kMaxBuffers) + " buffers");
    }
    for (const DeviceReplica& replica : replicas) ranks_.push_back(make_rank(replica));
    sums_ = target.server.device->make_stream();
  }

  int size() const override { return static_cast<int>(ranks_.size()); }

  void start(int rank, std::span<const float* const> buffers, std::span<float> result,
             BufferRange range) override {
    Rank& own = ranks_.at(static_cast<size_t>(rank));
    require_sizes(buffers.size(), result.size());
    own.compute->record(*own.ready);
    if (own.there) {
      copy(own, buffers, range);
    } else {
      own.at.assign(buffers.begin(), buffers.end());
    }
    host_->barrier(rank);  // all ranks have said where their buffers are, and recorded `ready`
    if (rank == 0) sum(result.data(), range);
    host_->barrier(rank);  // the sum is queued: its events may be recorded again
  }

  void finish(int rank) override {
    // What comes next there overwrites the buffers.
    ranks_.at(static_cast<size_t>(rank)).compute->wait(*summed_);
    if (rank == 0) target_.server.stream->wait(*summed_);
  }

  void broadcast(int rank, std::span<float> values, int root) override {
    host_->broadcast(rank, values, root);
  }
  void barrier(int rank) override { host_->barrier(rank); }
  void abort() noexcept override { host_->abort(); }
  Traffic traffic() const override { return traffic_; }

 private:
  // A rank writes `at` before the first barrier of start(); rank 0 reads it between the two.
  struct Rank {
    Stream* compute = nullptr;
    std::vector<const float*> at;    // its buffers, or their copies, on the server's device
    std::unique_ptr<Memory> there;   // the copies; null for a replica on the server's device
    std::unique_ptr<Event> ready;    // on `compute`: its buffers are complete in the range
    std::unique_ptr<Event> arrived;  // on `stream`: they are copied
    std::unique_ptr<Stream> stream;  // of the copies; last, because it uses all of the above
  };

  Rank make_rank(const DeviceReplica& replica) const {
    Rank rank;
    rank.compute = replica.stream;
    rank.ready = replica.device->make_event();
    if (replica.device->name() == target_.server.device->name()) return rank;
    // Allocated here and not at the first sum, so that a run does not begin without them.
    const auto floats = static_cast<size_t>(target_.floats * target_.buffers);
    rank.there = target_.server.device->allocate(floats * sizeof(float), MemoryKind::device);
    for (int buffer = 0; buffer < target_.buffers; ++buffer) {
      rank.at.push_back(reinterpret_cast<const float*>(rank.there->data()) +
                        buffer * target_.floats);
    }
    rank.arrived = replica.device->make_event();
    rank.stream = replica.device->make_stream();
    return rank;
  }

  void require_sizes(size_t buffers, size_t floats) const {
    if (buffers == static_cast<size_t>(target_.buffers) &&
        floats == static_cast<size_t>(target_.floats)) {
      return;
    }
    throw std::invalid_argument("parameter server: " + std::to_string(buffers) + " buffers of " +
                                std::to_string(floats) + " floats instead of " +
                                std::to_string(target_.buffers) + " of " +
                                std::to_string(target_.floats));
  }

  void copy(Rank& own, std::span<const float* const> buffers, BufferRange range) const {
    own.stream->wait(*own.ready);
    auto* to = reinterpret_cast<float*>(own.there->data());
    const size_t bytes = static_cast<size_t>(range.end - range.begin) * sizeof(float);
    for (const float* buffer : buffers) {
      own.stream->copy(to + range.begin, buffer + range.begin, bytes, CopyKind::device_to_device);
      to += target_.floats;
    }
    own.stream->record(*own.arrived);
  }

  void sum(float* result, BufferRange range) {
    BufferSum sum;
    for (const Rank& rank : ranks_) {
      sums_->wait(rank.there ? *rank.arrived : *rank.ready);
      for (const float* buffer : rank.at) {
        sum.buffers[static_cast<size_t>(sum.buffer_count++)] = buffer;
      }
    }
    sum.results[0] = result;
    sum.result_count = 1;
    sum.begin = range.begin;
    sum.end = range.end;
    kernel_(*sums_, sum);
    sums_->record(*summed_);
    traffic_.gradients_sent += int64_t{sum.buffer_count} * 4 * (range.end - range.begin);
  }

  const PushTarget target_;
  const SumKernel kernel_;
  const std::unique_ptr<Collective> host_;  // for the barriers of the threads
  std::vector<Rank> ranks_;
  Traffic traffic_;                      // rank 0's
  const std::unique_ptr<Event> summed_;  // on `sums_`: all ranges so far; rank 0 records it
  std::unique_ptr<Stream> sums_;         // rank 0's; last, because it uses all of the above
};

}  // namespace

std::unique_ptr<Collective> make_push_to_device(const PushTarget& target,
                                                std::span<const DeviceReplica> replicas,
                                                SumKernel kernel) {
  return std::make_unique<PushToDevice>(target, replicas, std::move(kernel));
}

}  // namespace stoker
