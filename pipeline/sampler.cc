#include "pipeline/sampler.h"

#include <bit>
#include <stdexcept>
#include <string>

#include "pipeline/invalid_field.h"
#include "pipeline/random_key.h"

namespace stoker {
namespace {

__extension__ using uint128 = unsigned __int128;

constexpr int64_t kMaxSamples = int64_t{1} << 40;
// The number of rounds of two half-steps. With few bits, a round has few functions to choose from,
// so it takes more rounds until every order is equally likely; with many bits four random functions
// are enough (Luby and Rackoff 1988), and these are twice that.
int rounds_for(int bits) { return bits <= 12 ? 20 : 4; }

constexpr uint64_t kSpread = 0xD6E8FEB86659FD93, kStride = 0x9E3779B97F4A7C15;

// The round function: spreads the few bits of `value` over the word before the keyed product
// (otherwise neighbours would differ only by a carry), and folds the product's halves.
uint64_t mix(uint64_t value, EpochOrder key) {
  const uint128 product = static_cast<uint128>((value * kSpread) ^ key.add) * key.multiply;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// A Feistel network on `bits` bits, with halves of nearly equal size. Each half is changed in place
// by a function of the other, so it is a bijection for any such function.
uint64_t feistel(uint64_t value, int bits, EpochOrder key) {
  const int low_bits = (bits + 1) / 2;
  const uint64_t low_mask = (uint64_t{1} << low_bits) - 1;
  const uint64_t high_mask = (uint64_t{1} << (bits - low_bits)) - 1;
  uint64_t low = value & low_mask;
  uint64_t high = value >> low_bits;
  for (int round = rounds_for(bits); round > 0; --round) {
    low ^= mix(high, key) & low_mask;
    key.add += kStride;
    high ^= mix(low, key) & high_mask;
    key.add += kStride;
  }
  return (high << low_bits) | low;
}

std::string numbers_of(const SamplerOptions& options) {
  return "samples = " + std::to_string(options.samples) +
         ", rows = " + std::to_string(options.rows) +
         ", replicas = " + std::to_string(options.replicas);
}

}  // namespace

const char* to_string(LastBatch policy) {
  switch (policy) {
    case LastBatch::pad:
      return "pad";
    case LastBatch::drop:
      return "drop";
    case LastBatch::wrap:
      return "wrap";
  }
  return "?";
}

Sampler::Sampler(const SamplerOptions& options)
    : options_(options), global_batch_(int64_t{options.rows} * options.replicas) {
  if (options.samples < 1) {
    throw std::invalid_argument("Sampler: no samples (" + numbers_of(options) + ")");
  }
  if (options.samples > kMaxSamples) {
    throw std::invalid_argument("Sampler: more than 2^40 samples (" + numbers_of(options) + ")");
  }
  if (options.rows < 1 || options.replicas < 1) {
    throw std::invalid_argument("Sampler: rows and replicas must be at least 1 (" +
                                numbers_of(options) + ")");
  }
  if (options.last_batch == LastBatch::drop && options.samples < global_batch_) {
    throw InvalidField(
        "Sampler", "batch_size",
        ": a global batch of " + std::to_string(global_batch_) + " samples is more than the " +
            std::to_string(options.samples) +
            " samples, and `last_batch` drop leaves out what does not fill one: take at most " +
            std::to_string(options.samples) + " samples, or `last_batch` pad");
  }
  bits_ = std::bit_width(static_cast<uint64_t>(options.samples - 1));
}

int64_t Sampler::steps_per_epoch() const {
  const int64_t whole = options_.samples / global_batch_;
  const bool remainder = options_.samples % global_batch_ != 0;
  return options_.last_batch == LastBatch::drop ? whole : whole + (remainder ? 1 : 0);
}

EpochOrder Sampler::order(int64_t epoch) const {
  const RandomKey random(options_.seed, epoch, -1);
  return {random.bits(0), random.bits(1) | 1};
}

SampledRow Sampler::row(const EpochOrder& order, int64_t step_in_epoch, int replica,
                        int row) const {
  const int64_t first = step_in_epoch * global_batch_;
  const int64_t global_row = int64_t{replica} * options_.rows + row;
  const int64_t remaining = options_.samples - first;  // real rows of this global batch
  if (global_row < remaining) return {permute(order, first + global_row), 1.0f};
  if (options_.last_batch == LastBatch::wrap) {
    return {permute(order, (first + global_row) % options_.samples), 1.0f};
  }
  // Round robin over the batch's real rows: each is repeated as often as any other.
  return {permute(order, first + global_row % remaining), 0.0f};
}

SampleId Sampler::permute(const EpochOrder& order, int64_t position) const {
  if (!options_.shuffle || options_.samples == 1) return position;
  // Follow the cycle until it returns into range: under two steps on average, as 2^bits < 2 * n.
  uint64_t value = static_cast<uint64_t>(position);
  do {
    value = feistel(value, bits_, order);
  } while (value >= static_cast<uint64_t>(options_.samples));
  return static_cast<SampleId>(value);
}

}  // namespace stoker
