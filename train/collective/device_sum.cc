#include <set>
#include <stdexcept>
#include <string>

#include "train/collective/device.h"

namespace stoker {
namespace {

// Ranges start at multiples of this, so that they contain whole cache lines and vectors.
constexpr int64_t kDeviceRangeFloats = 64;

// Streams wait for one another's events, and threads meet so that each knows the others' buffers
// and events: no thread waits for a device.
class DeviceSum final : public RangeCollective {
 public:
  DeviceSum(std::span<const DeviceReplica> replicas, SumKernel kernel,
            const std::optional<PushTarget>& server)
      : RangeCollective(std::make_shared<Ranks>(static_cast<int>(replicas.size()))),
        kernel_(std::move(kernel)),
        server_(server) {
    require_few(replicas.size());
    for (const DeviceReplica& replica : replicas) {
      Rank& rank = ranks_.emplace_back();
      rank.compute = replica.stream;
      rank.ready = replica.device->make_event();
      if (server_ && replica.device->name() != server_->server.device->name()) {
        make_copies(rank, *replica.device);
      }
      if (server_ && ranks_.size() > 1) continue;
      Device& place = server_ ? *server_->server.device : *replica.device;
      rank.summed = place.make_event();
      rank.sums = place.make_stream();
    }
  }

  void start(int rank, std::span<const float* const> buffers, std::span<float> result,
             BufferRange range) override {
    Rank& own = ranks_.at(static_cast<size_t>(rank));
    if (server_) require_sizes(buffers.size(), result.size());
    own.result = result;
    own.compute->record(*own.ready);
    if (own.copies != nullptr) {
      copy(own, buffers, range);
    } else {
      own.at.assign(buffers.begin(), buffers.end());
    }
    ranks()->meet(rank);  // all ranks have said where their buffers are, and recorded `ready`
    if (own.sums != nullptr) sum(rank, range);
    ranks()->meet(rank);  // all sums are queued: buffers and events may change again
  }

  void finish(int rank) override {
    Rank& own = ranks_.at(static_cast<size_t>(rank));
    for (const Rank& other : ranks_) {
      if (other.summed != nullptr) own.compute->wait(*other.summed);
    }
    if (server_ && rank == 0) server_->server.stream->wait(*own.summed);
  }

 private:
  // The rank writes `at` and `result` before the first meeting of start(); others read them between
  // its two.
  struct Rank {
    Stream* compute = nullptr;
    std::vector<const float*> at;  // its buffers, or their copies on the server's device
    std::span<float> result;
    std::unique_ptr<Memory> copies;   // of a replica on another device than the server, else null
    std::unique_ptr<Event> ready;     // on `compute`: its buffers are complete in the range
    std::unique_ptr<Event> arrived;   // on `copying`: they are copied
    std::unique_ptr<Event> summed;    // on `sums`: its share of all ranges so far
    std::unique_ptr<Stream> copying;  // streams last, because they use all of the above
    std::unique_ptr<Stream> sums;     // null: others sum
  };

  void require_few(size_t replicas) const {
    if (!server_ && replicas > static_cast<size_t>(BufferSum::kMaxResults)) {
      throw std::invalid_argument("collective: " + std::to_string(replicas) +
                                  " replicas on one device; at most " +
                                  std::to_string(BufferSum::kMaxResults));
    }
    if (!server_) return;
    const size_t all = replicas * static_cast<size_t>(server_->buffers);
    if (server_->buffers < 1 || all > static_cast<size_t>(BufferSum::kMaxBuffers)) {
      throw std::invalid_argument("parameter server: " + std::to_string(replicas) +
                                  " replicas with " + std::to_string(server_->buffers) +
                                  " gradient buffers each; it sums at most " +
                                  std::to_string(BufferSum::kMaxBuffers) + " buffers");
    }
  }

  void require_sizes(size_t buffers, size_t floats) const {
    if (buffers == static_cast<size_t>(server_->buffers) &&
        floats == static_cast<size_t>(server_->floats)) {
      return;
    }
    throw std::invalid_argument("parameter server: " + std::to_string(buffers) + " buffers of " +
                                std::to_string(floats) + " floats instead of " +
                                std::to_string(server_->buffers) + " of " +
                                std::to_string(server_->floats));
  }

  // Allocates here and not at the first sum, so that a run does not begin without the memory.
  void make_copies(Rank& rank, Device& device) const {
    const auto floats = static_cast<size_t>(server_->floats * server_->buffers);
    rank.copies = server_->server.device->allocate(floats * sizeof(float), MemoryKind::device);
    for (int buffer = 0; buffer < server_->buffers; ++buffer) {
      rank.at.push_back(reinterpret_cast<const float*>(rank.copies->data()) +
                        buffer * server_->floats);
    }
    rank.arrived = device.make_event();
    rank.copying = device.make_stream();
  }

  void copy(Rank& own, std::span<const float* const> buffers, BufferRange range) const {
    own.copying->wait(*own.ready);
    auto* to = reinterpret_cast<float*>(own.copies->data());
    const size_t bytes = static_cast<size_t>(range.end - range.begin) * sizeof(float);
    for (const float* buffer : buffers) {
      own.copying->copy(to + range.begin, buffer + range.begin, bytes, CopyKind::device_to_device);
      to += server_->floats;
    }
    own.copying->record(*own.arrived);
  }

  // Queues a rank's share of a range, for all ranks; or, for a server, all of it.
  void sum(int rank, BufferRange range) {
    Rank& own = ranks_[static_cast<size_t>(rank)];
    BufferSum sum;
    for (const Rank& other : ranks_) {
      own.sums->wait(other.copies != nullptr ? *other.arrived : *other.ready);
      if (other.result.size() != own.result.size()) {
        throw std::invalid_argument("collective: replicas of " + std::to_string(own.result.size()) +
                                    " and " + std::to_string(other.result.size()) + " floats");
      }
      for (const float* buffer : other.at) {
        if (sum.buffer_count == BufferSum::kMaxBuffers) {
          throw std::invalid_argument("collective: more than " +
                                      std::to_string(BufferSum::kMaxBuffers) +
                                      " gradient buffers on one device: use larger micro-batches");
        }
        sum.buffers[static_cast<size_t>(sum.buffer_count++)] = buffer;
      }
      if (server_ && &other != &own) continue;
      sum.results[static_cast<size_t>(sum.result_count++)] = other.result.data();
    }
    const int64_t length = range.end - range.begin;
    const BufferRange part =
        server_ ? BufferRange{0, length} : share_of(length, rank, size(), kDeviceRangeFloats);
    sum.begin = range.begin + part.begin;
    sum.end = range.begin + part.end;
    if (sum.begin < sum.end) kernel_(*own.sums, sum);
    own.sums->record(*own.summed);
    if (server_) {
      traffic_.gradients_sent += int64_t{sum.buffer_count} * 4 * length;
    } else if (rank == 0) {
      traffic_ += chain_traffic(0, size(), size(), 4 * length);
    }
  }

  const SumKernel kernel_;
  const std::optional<PushTarget> server_;
  std::vector<Rank> ranks_;
};

}  // namespace

std::unique_ptr<Collective> make_device_collective(std::span<const DeviceReplica> replicas,
                                                   SumKernel kernel,
                                                   const std::optional<PushTarget>& server) {
  return std::make_unique<DeviceSum>(replicas, std::move(kernel), server);
}

ReduceKind best_reduction(std::span<const int> ordinals, bool several_processes) {
  const std::set<int> different(ordinals.begin(), ordinals.end());
  if (!several_processes && different.size() == 1) return ReduceKind::device;
  if (different.size() == ordinals.size()) return ReduceKind::nccl;
  return ReduceKind::host;
}

void sum_buffers_now(const BufferSum& sum) {
  for (int64_t i = sum.begin; i < sum.end; ++i) {
    float total = sum.buffers[0][i];
    for (int buffer = 1; buffer < sum.buffer_count; ++buffer) {
      total += sum.buffers[static_cast<size_t>(buffer)][i];
    }
    for (int result = 0; result < sum.result_count; ++result) {
      sum.results[static_cast<size_t>(result)][i] = total;
    }
  }
}

void sum_buffers_on_host(Stream& stream, const BufferSum& sum) {
  stream.call([sum] { sum_buffers_now(sum); });
}

}  // namespace stoker
