#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "train/device_collective.h"

namespace stoker {
namespace {

class StagedCollective final : public Collective {
 public:
  StagedCollective(std::span<const DeviceReplica> replicas, std::unique_ptr<Collective> inner,
                   int64_t bucket_bytes)
      : inner_(std::move(inner)),
        bucket_floats_(bucket_bytes / static_cast<int64_t>(sizeof(float))) {
    if (bucket_floats_ < 1 || replicas.empty()) {
      throw std::invalid_argument("staged collective: " + std::to_string(replicas.size()) +
                                  " replicas, buckets of " + std::to_string(bucket_bytes) +
                                  " bytes");
    }
    for (const DeviceReplica& replica : replicas) ranks_.push_back({replica, {}, {}, {}, {}});
  }

  int size() const override { return inner_->size(); }

  void all_reduce(int rank, std::span<const float* const> parts, std::span<float> result) override {
    Rank& own = ranks_.at(static_cast<size_t>(rank));
    const auto count = static_cast<int64_t>(result.size());
    prepare(own, parts.size(), count);
    Stream& stream = *own.replica.stream;
    for (int64_t begin = 0, bucket = 0; begin < count; begin += bucket_floats_, ++bucket) {
      const size_t bytes = bytes_of(begin, count);
      for (size_t part = 0; part < parts.size(); ++part) {
        stream.copy(own.parts[part] + begin, parts[part] + begin, bytes, CopyKind::device_to_host);
      }
      stream.record(*own.arrived[static_cast<size_t>(bucket)]);
    }
    std::vector<const float*>& at = own.parts_at;
    for (int64_t begin = 0, bucket = 0; begin < count; begin += bucket_floats_, ++bucket) {
      own.arrived[static_cast<size_t>(bucket)]->synchronize();
      for (size_t part = 0; part < parts.size(); ++part) at[part] = own.parts[part] + begin;
      const size_t bytes = bytes_of(begin, count);
      inner_->all_reduce(rank, at, std::span(own.sum + begin, bytes / sizeof(float)));
      stream.copy(result.data() + begin, own.sum + begin, bytes, CopyKind::host_to_device);
    }
  }

  void broadcast(int rank, std::span<float> values, int root) override {
    inner_->broadcast(rank, values, root);
  }
  void barrier(int rank) override { inner_->barrier(rank); }
  void abort() noexcept override { inner_->abort(); }

 private:
  // Its rank's alone. The sum is written again only after the next parts have come, which are
  // behind its copy in the stream.
  struct Rank {
    DeviceReplica replica;
    std::unique_ptr<Memory> memory;  // parts, then the sum; pinned
    std::vector<float*> parts;
    std::vector<const float*> parts_at;
    std::vector<std::unique_ptr<Event>> arrived;  // per bucket
    float* sum = nullptr;
  };

  size_t bytes_of(int64_t begin, int64_t count) const {
    return static_cast<size_t>(std::min(bucket_floats_, count - begin)) * sizeof(float);
  }

  void prepare(Rank& own, size_t part_count, int64_t count) {
    const size_t bytes = (part_count + 1) * static_cast<size_t>(count) * sizeof(float);
    if (own.memory != nullptr && own.memory->size_bytes() == bytes &&
        own.parts.size() == part_count) {
      return;
    }
    if (own.memory != nullptr) own.replica.stream->synchronize();  // the last sum may be on its way
    own.memory = own.replica.device->allocate(bytes, MemoryKind::pinned);
    auto* next = reinterpret_cast<float*>(own.memory->data());
    own.parts.clear();
    for (size_t part = 0; part < part_count; ++part, next += count) own.parts.push_back(next);
    own.parts_at.resize(part_count);
    own.sum = next;
    own.arrived.clear();
    for (int64_t begin = 0; begin < count; begin += bucket_floats_) {
      own.arrived.push_back(own.replica.device->make_event());
    }
  }

  const std::unique_ptr<Collective> inner_;
  const int64_t bucket_floats_;
  std::vector<Rank> ranks_;
};

}  // namespace

std::unique_ptr<Collective> make_staged_collective(std::span<const DeviceReplica> replicas,
                                                   std::unique_ptr<Collective> inner,
                                                   int64_t bucket_bytes) {
  return std::make_unique<StagedCollective>(replicas, std::move(inner), bucket_bytes);
}

}  // namespace stoker
