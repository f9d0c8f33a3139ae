#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "train/collective/device.h"
#include "train/collective/share.h"

namespace stoker {
namespace {

// Ranges start at multiples of this, so that they contain whole cache lines and vectors.
constexpr int64_t kDeviceRangeFloats = 64;

class SharedDeviceCollective final : public RangeCollective {
 public:
  SharedDeviceCollective(std::span<const DeviceReplica> replicas, SumKernel kernel)
      : kernel_(std::move(kernel)), host_(make_host_collective(static_cast<int>(replicas.size()))) {
    if (replicas.size() > static_cast<size_t>(BufferSum::kMaxResults)) {
      throw std::invalid_argument("collective: " + std::to_string(replicas.size()) +
                                  " replicas on one device; at most " +
                                  std::to_string(BufferSum::kMaxResults));
    }
    for (const DeviceReplica& replica : replicas) {
      ranks_.push_back({replica.stream,
                        {},
                        {},
                        replica.device->make_event(),
                        replica.device->make_event(),
                        replica.device->make_stream()});
    }
  }

  int size() const override { return static_cast<int>(ranks_.size()); }

  void start(int rank, std::span<const float* const> buffers, std::span<float> result,
             BufferRange range) override {
    Rank& own = ranks_.at(static_cast<size_t>(rank));
    own.buffers = buffers;
    own.result = result;
    own.compute->record(*own.ready);
    host_->barrier(rank);  // all ranks have set their buffers and recorded `ready`
    for (const Rank& other : ranks_) own.stream->wait(*other.ready);
    const BufferSum sum = sum_of(rank, static_cast<int64_t>(result.size()), range);
    if (sum.begin < sum.end) kernel_(*own.stream, sum);
    own.stream->record(*own.done);
    if (rank == 0) traffic_ += chain_traffic(0, size(), size(), 4 * (range.end - range.begin));
    host_->barrier(rank);  // all shares are queued, and no rank reads the others' buffers any more
  }

  void finish(int rank) override {
    Rank& own = ranks_.at(static_cast<size_t>(rank));
    for (const Rank& other : ranks_) own.compute->wait(*other.done);
  }

  void broadcast(int rank, std::span<float> values, int root) override {
    host_->broadcast(rank, values, root);
  }
  void barrier(int rank) override { host_->barrier(rank); }
  void abort() noexcept override { host_->abort(); }
  Traffic traffic() const override { return traffic_; }

 private:
  // The rank writes `buffers` and `result` before the first barrier of start(); all ranks read them
  // between its two barriers.
  struct Rank {
    Stream* compute;
    std::span<const float* const> buffers;
    std::span<float> result;
    std::unique_ptr<Event> ready;    // on `compute`: its buffers are complete in the range
    std::unique_ptr<Event> done;     // on `stream`: its share of all ranges so far is summed
    std::unique_ptr<Stream> stream;  // of the sums; last, because it uses all of the above
  };

  // Returns a rank's share of a range.
  BufferSum sum_of(int rank, int64_t count, BufferRange range) const {
    BufferSum sum;
    for (const Rank& other : ranks_) {
      if (other.result.size() != static_cast<size_t>(count)) {
        throw std::invalid_argument("collective: replicas of " + std::to_string(count) + " and " +
                                    std::to_string(other.result.size()) + " floats");
      }
      for (const float* buffer : other.buffers) {
        if (sum.buffer_count == BufferSum::kMaxBuffers) {
          throw std::invalid_argument("collective: more than " +
                                      std::to_string(BufferSum::kMaxBuffers) +
                                      " gradient buffers on one device: use larger micro-batches");
        }
        sum.buffers[static_cast<size_t>(sum.buffer_count++)] = buffer;
      }
      sum.results[static_cast<size_t>(sum.result_count++)] = other.result.data();
    }
    const int64_t length = range.end - range.begin;
    sum.begin = range.begin + share_begin(length, rank, size(), kDeviceRangeFloats);
    sum.end = range.begin + share_begin(length, rank + 1, size(), kDeviceRangeFloats);
    return sum;
  }

  const SumKernel kernel_;
  const std::unique_ptr<Collective> host_;  // for the barriers of the threads
  std::vector<Rank> ranks_;
  Traffic traffic_;  // rank 0's
};

}  // namespace

std::unique_ptr<Collective> make_shared_device_collective(std::span<const DeviceReplica> replicas,
                                                          SumKernel kernel) {
  return std::make_unique<SharedDeviceCollective>(replicas, std::move(kernel));
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
