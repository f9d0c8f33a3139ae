#include "bench/suite/device_ring.h"

#include <stdexcept>

namespace stoker {

DeviceRing::DeviceRing(std::span<const DeviceReplica> replicas, int64_t floats)
    : meet_(std::ssize(replicas)) {
  if (replicas.empty()) throw std::invalid_argument("a ring without devices");
  for (const DeviceReplica& replica : replicas) {
    Rank rank;
    rank.replica = replica;
    Device& device = *replica.device;
    rank.inbox = device.allocate(static_cast<size_t>(floats) * sizeof(float), MemoryKind::device);
    rank.given = device.make_event();
    rank.done = device.make_event();
    for (size_t turn = 0; turn < 2 * replicas.size(); ++turn) {
      rank.sent.push_back(device.make_event());
    }
    rank.stream = device.make_stream();
    ranks_.push_back(std::move(rank));
  }
}

void DeviceRing::start(int rank, const float* gradients, float* result, BufferRange range) {
  Rank& own = ranks_[rank];
  own.gradients = gradients;
  own.result = result;
  own.replica.stream->record(*own.given);
  own.stream->wait(*own.given);
  // An event can only be waited for when it was recorded, so one thread queues for all ranks.
  meet_.arrive_and_wait();
  if (rank == 0) queue(range);
  meet_.arrive_and_wait();
}

void DeviceRing::finish(int rank) {
  Rank& own = ranks_[rank];
  own.stream->record(*own.done);
  own.replica.stream->wait(*own.done);
}

BufferRange DeviceRing::part(BufferRange range, int index) const {
  const auto ranks = static_cast<int64_t>(ranks_.size());
  const int64_t position = (index % ranks + ranks) % ranks, count = range.end - range.begin;
  return {range.begin + count * position / ranks, range.begin + count * (position + 1) / ranks};
}

void DeviceRing::queue(BufferRange range) {
  const auto ranks = static_cast<int>(ranks_.size());
  const auto bytes = [](BufferRange part) {
    return static_cast<size_t>(part.end - part.begin) * sizeof(float);
  };
  for (Rank& own : ranks_) {
    own.stream->copy(own.result + range.begin, own.gradients + range.begin, bytes(range),
                     CopyKind::device_to_device);
  }
  for (int turn = 0; turn < 2 * (ranks - 1); ++turn) {
    const bool sums = turn < ranks - 1;
    for (int rank = 0; rank < ranks; ++rank) {
      Rank &own = ranks_[rank], &next = after(rank);
      const BufferRange sent = part(range, rank - turn);
      float* target = sums ? reinterpret_cast<float*>(next.inbox->data()) : next.result;
      own.stream->copy(target + sent.begin, own.result + sent.begin, bytes(sent),
                       CopyKind::device_to_device);
      own.stream->record(*own.sent[turn]);
    }
    for (int rank = 0; rank < ranks; ++rank) {
      Rank& next = after(rank);
      next.stream->wait(*ranks_[rank].sent[turn]);
      if (!sums) continue;
      const BufferRange got = part(range, rank - turn);
      const float* values = reinterpret_cast<const float*>(next.inbox->data());
      next.stream->call([result = next.result, values, got] {
        for (int64_t i = got.begin; i < got.end; ++i) result[i] += values[i];
      });
    }
  }
}

}  // namespace stoker
