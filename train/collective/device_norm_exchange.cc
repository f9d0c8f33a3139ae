#include "train/collective/device_norm_exchange.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>

namespace stoker {
namespace {

float* floats_of(Memory& memory) { return reinterpret_cast<float*>(memory.data()); }

}  // namespace

DeviceNormExchange::DeviceNormExchange(int ranks, int64_t most)
    : most_(most), barrier_(ranks), ranks_(static_cast<size_t>(ranks)) {}

DeviceNormExchange::~DeviceNormExchange() {
  for (const Rank& rank : ranks_) {
    try {
      if (rank.replica.stream != nullptr) rank.replica.stream->synchronize();
    } catch (const std::exception&) {
      // The device has failed and has already reported it; there is nothing to wait for.
    }
  }
}

void DeviceNormExchange::join(int rank, const DeviceReplica& replica) {
  Rank& own = ranks_.at(static_cast<size_t>(rank));
  own.replica = replica;
  for (auto& event : own.written) event = replica.device->make_event();
  if (++joined_ == ranks()) allocate();
}

void DeviceNormExchange::allocate() {
  Device& first = *ranks_[0].replica.device;
  const size_t row = static_cast<size_t>(most_) * sizeof(float);
  const size_t bytes = kRounds * ranks_.size() * row;
  const bool one_device = std::ranges::all_of(
      ranks_, [&](const Rank& rank) { return rank.replica.device->name() == first.name(); });
  if (one_device) {
    on_device_ = first.allocate(bytes, MemoryKind::device);
    return;
  }
  between_ = first.allocate(bytes, MemoryKind::pinned);
  for (Rank& rank : ranks_) {
    rank.memory = rank.replica.device->allocate((1 + ranks_.size()) * row, MemoryKind::device);
  }
}

float* DeviceNormExchange::place(int rank, int64_t count) {
  if (joined_ < ranks()) broken("not all have joined", rank);
  Rank& own = ranks_.at(static_cast<size_t>(rank));
  if (count > most_) broken("too many numbers", rank);
  own.parts[own.rounds % kRounds].count = count;
  return own.memory ? floats_of(*own.memory) : shared(*on_device_, own.rounds) + rank * most_;
}

DeviceNormExchange::Numbers DeviceNormExchange::meet(int rank, int step) {
  Rank& own = ranks_.at(static_cast<size_t>(rank));
  Stream& stream = *own.replica.stream;
  const uint64_t round = own.rounds++;
  const size_t slot = round % kRounds;
  Part& part = own.parts[slot];
  part.step = step;
  const size_t bytes = static_cast<size_t>(part.count) * sizeof(float);
  if (own.memory) {
    stream.copy(shared(*between_, round) + rank * part.count, floats_of(*own.memory), bytes,
                CopyKind::device_to_host);
  }
  stream.record(*own.written[slot]);
  barrier_.wait();
  for (const Rank& other : ranks_) {
    if (other.parts[slot] != part) broken("another replica is in another step", rank);
    if (&other != &own) stream.wait(*other.written[slot]);
  }
  if (!own.memory) return {shared(*on_device_, round), most_};
  float* const all = floats_of(*own.memory) + most_;
  stream.copy(all, shared(*between_, round), ranks_.size() * bytes, CopyKind::host_to_device);
  return {all, part.count};
}

float* DeviceNormExchange::shared(Memory& memory, uint64_t round) const {
  return floats_of(memory) + static_cast<int64_t>(round % kRounds) * ranks() * most_;
}

void DeviceNormExchange::broken(const char* what, int rank) const {
  const Rank& at = ranks_[static_cast<size_t>(rank)];
  std::fprintf(stderr, "stoker: batch norms of replicas on devices: %s (rank %d, round %llu)\n",
               what, rank, static_cast<unsigned long long>(at.rounds));
  std::abort();
}

}  // namespace stoker
