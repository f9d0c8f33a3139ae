#include "train/collective/device_norm_exchange.h"

#include <cstdio>
#include <cstdlib>
#include <exception>

namespace stoker {

DeviceNormExchange::DeviceNormExchange(int ranks, int64_t most)
    : most_(most), barrier_(ranks), ranks_(static_cast<size_t>(ranks)) {}

DeviceNormExchange::~DeviceNormExchange() {
  for (const Rank& rank : ranks_) {
    try {
      if (rank.stream != nullptr) rank.stream->synchronize();
    } catch (const std::exception&) {
      // The device has failed and has already reported it; there is nothing to wait for.
    }
  }
}

void DeviceNormExchange::join(int rank, const DeviceReplica& replica) {
  Rank& own = ranks_.at(static_cast<size_t>(rank));
  if (memory_ == nullptr) {
    const size_t bytes = kRounds * ranks_.size() * static_cast<size_t>(most_) * sizeof(float);
    memory_ = replica.device->allocate(bytes, MemoryKind::device);
  }
  for (auto& event : own.written) event = replica.device->make_event();
  own.stream = replica.stream;
}

float* DeviceNormExchange::place(int rank, int64_t count) {
  Rank& own = ranks_.at(static_cast<size_t>(rank));
  if (own.stream == nullptr) broken("it has not joined", rank);
  if (count > most_) broken("too many numbers", rank);
  own.parts[own.rounds % kRounds].count = count;
  return floats_of(own.rounds) + rank * most_;
}

const float* DeviceNormExchange::meet(int rank, int step) {
  Rank& own = ranks_.at(static_cast<size_t>(rank));
  const uint64_t round = own.rounds++;
  const size_t slot = round % kRounds;
  own.parts[slot].step = step;
  own.stream->record(*own.written[slot]);
  barrier_.wait();
  for (const Rank& other : ranks_) {
    if (other.parts[slot] != own.parts[slot]) broken("another replica is in another step", rank);
    if (&other != &own) own.stream->wait(*other.written[slot]);
  }
  return floats_of(round);
}

float* DeviceNormExchange::floats_of(uint64_t round) const {
  auto* floats = reinterpret_cast<float*>(memory_->data());
  return floats + static_cast<int64_t>(round % kRounds) * ranks() * most_;
}

void DeviceNormExchange::broken(const char* what, int rank) const {
  const Rank& at = ranks_[static_cast<size_t>(rank)];
  std::fprintf(stderr, "stoker: batch norms of replicas on a device: %s (rank %d, round %llu)\n",
               what, rank, static_cast<unsigned long long>(at.rounds));
  std::abort();
}

}  // namespace stoker
