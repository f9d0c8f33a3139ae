#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "train/collective/device.h"

namespace stoker {
namespace {

class StagedCollective final : public RangeCollective {
 public:
  StagedCollective(std::span<const DeviceReplica> replicas, std::unique_ptr<Collective> inner,
                   int64_t piece_bytes)
      : RangeCollective(inner->ranks()),
        inner_(std::move(inner)),
        piece_floats_(piece_bytes / static_cast<int64_t>(sizeof(float))) {
    if (piece_floats_ < 1 || replicas.empty()) {
      throw std::invalid_argument("staged collective: " + std::to_string(replicas.size()) +
                                  " replicas, pieces of " + std::to_string(piece_bytes) + " bytes");
    }
    for (const DeviceReplica& replica : replicas) {
      Rank rank;
      rank.replica = replica;
      rank.stream = replica.device->make_stream();
      rank.given = replica.device->make_event();
      rank.summed = replica.device->make_event();
      ranks_.push_back(std::move(rank));
    }
  }

  // Queues the copies to the host; the host does not wait before finish().
  void start(int rank, std::span<const float* const> buffers, std::span<float> result,
             BufferRange range) override {
    Rank& own = ranks_.at(static_cast<size_t>(rank));
    prepare(own, buffers.size(), static_cast<int64_t>(result.size()));
    own.result = result;
    own.replica.stream->record(*own.given);
    own.stream->wait(*own.given);
    for (int64_t begin = range.begin; begin < range.end; begin += piece_floats_) {
      const int64_t end = std::min(begin + piece_floats_, range.end);
      const size_t bytes = static_cast<size_t>(end - begin) * sizeof(float);
      for (size_t i = 0; i < buffers.size(); ++i) {
        own.stream->copy(own.buffers[i] + begin, buffers[i] + begin, bytes,
                         CopyKind::device_to_host);
      }
      if (own.arrived.size() == own.pieces.size()) {
        own.arrived.push_back(own.replica.device->make_event());
      }
      own.stream->record(*own.arrived[own.pieces.size()]);
      own.pieces.push_back({begin, end});
    }
  }

  void finish(int rank) override {
    Rank& own = ranks_.at(static_cast<size_t>(rank));
    if (inner_->wire()) join_pieces(own);
    std::vector<const float*>& at = own.buffers_at;
    for (size_t piece = 0; piece < own.pieces.size(); ++piece) {
      own.arrived[piece]->synchronize();
      const auto [begin, end] = own.pieces[piece];
      const auto count = static_cast<size_t>(end - begin);
      for (size_t i = 0; i < at.size(); ++i) at[i] = own.buffers[i] + begin;
      inner_->all_reduce(rank, at, std::span(own.sum + begin, count));
      own.stream->copy(own.result.data() + begin, own.sum + begin, count * sizeof(float),
                       CopyKind::host_to_device);
    }
    own.pieces.clear();
    own.stream->record(*own.summed);
    own.replica.stream->wait(*own.summed);
  }

  Traffic traffic() const override { return inner_->traffic(); }
  WireState* wire() override { return inner_->wire(); }

 private:
  // Used only by its rank's thread. The sum is overwritten only after the next buffers have
  // arrived, and their copies are behind the copy of the sum on the stream.
  struct Rank {
    DeviceReplica replica;
    std::unique_ptr<Memory> memory;  // buffers, then the sum; pinned
    std::vector<float*> buffers;
    std::vector<const float*> buffers_at;
    float* sum = nullptr;
    std::span<float> result;
    std::vector<BufferRange> pieces;              // being copied to the host
    std::vector<std::unique_ptr<Event>> arrived;  // per piece
    std::unique_ptr<Event> given;                 // on the replica's stream: a range is complete
    std::unique_ptr<Event> summed;                // on `stream`: the sums are copied back
    std::unique_ptr<Stream> stream;  // of the copies; last, because it uses all of the above
  };

  // Encoded gradients are summed as whole buffers: their blocks do not depend on the pieces.
  static void join_pieces(Rank& own) {
    if (own.pieces.size() < 2) return;
    std::swap(own.arrived[0], own.arrived[own.pieces.size() - 1]);
    own.pieces = {{0, static_cast<int64_t>(own.result.size())}};
  }

  void prepare(Rank& own, size_t buffer_count, int64_t count) {
    const size_t bytes = (buffer_count + 1) * static_cast<size_t>(count) * sizeof(float);
    if (own.memory != nullptr && own.memory->size_bytes() == bytes &&
        own.buffers.size() == buffer_count) {
      return;
    }
    if (own.memory != nullptr) own.stream->synchronize();  // the last sum may still be in use
    own.memory = own.replica.device->allocate(bytes, MemoryKind::pinned);
    auto* next = reinterpret_cast<float*>(own.memory->data());
    own.buffers.clear();
    for (size_t i = 0; i < buffer_count; ++i, next += count) own.buffers.push_back(next);
    own.buffers_at.resize(buffer_count);
    own.sum = next;
  }

  const std::unique_ptr<Collective> inner_;
  const int64_t piece_floats_;
  std::vector<Rank> ranks_;
};

}  // namespace

std::unique_ptr<Collective> make_staged_collective(std::span<const DeviceReplica> replicas,
                                                   std::unique_ptr<Collective> inner,
                                                   int64_t piece_bytes) {
  return std::make_unique<StagedCollective>(replicas, std::move(inner), piece_bytes);
}

}  // namespace stoker
