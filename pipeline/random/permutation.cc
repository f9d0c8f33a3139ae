#include "pipeline/random/permutation.h"

#include <bit>

namespace stoker {
namespace {

__extension__ using uint128 = unsigned __int128;

// The number of rounds of two half-steps. With few bits, a round has few functions to choose from,
// so it takes more rounds until every order is equally likely; with many bits four random functions
// are enough (Luby and Rackoff 1988), and these are twice that.
uint64_t rounds_for(int bits) { return bits <= 12 ? 20 : 4; }

constexpr uint64_t kSpread = 0xD6E8FEB86659FD93, kKeyStride = 0x9E3779B97F4A7C15;

// The round function: spreads the few bits of `value` over the word before the keyed product
// (otherwise neighbours would differ only by a carry), and folds the product's halves.
uint64_t mix(uint64_t value, const PermutationKey& key) {
  const uint128 product = static_cast<uint128>((value * kSpread) ^ key.add) * key.multiply;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// The two halves of a number of `bits` bits, of nearly equal size.
struct Halves {
  Halves(uint64_t value, int bits)
      : low_bits((bits + 1) / 2),
        low_mask((uint64_t{1} << low_bits) - 1),
        high_mask((uint64_t{1} << (bits - low_bits)) - 1),
        low(value & low_mask),
        high(value >> low_bits) {}
  uint64_t joined() const { return (high << low_bits) | low; }

  int low_bits;
  uint64_t low_mask, high_mask, low, high;
};

// Each half is changed in place by a function of the other, so this is a bijection for any such
// function.
uint64_t feistel(uint64_t value, int bits, PermutationKey key) {
  Halves halves(value, bits);
  for (uint64_t round = rounds_for(bits); round > 0; --round) {
    halves.low ^= mix(halves.high, key) & halves.low_mask;
    key.add += kKeyStride;
    halves.high ^= mix(halves.low, key) & halves.high_mask;
    key.add += kKeyStride;
  }
  return halves.joined();
}

// The same changes in the opposite order: each undoes itself.
uint64_t feistel_inverse(uint64_t value, int bits, PermutationKey key) {
  Halves halves(value, bits);
  key.add += 2 * rounds_for(bits) * kKeyStride;
  for (uint64_t round = rounds_for(bits); round > 0; --round) {
    key.add -= kKeyStride;
    halves.high ^= mix(halves.low, key) & halves.high_mask;
    key.add -= kKeyStride;
    halves.low ^= mix(halves.high, key) & halves.low_mask;
  }
  return halves.joined();
}

}  // namespace

Permutation::Permutation(int64_t size, const PermutationKey& key)
    : size_(size), bits_(std::bit_width(static_cast<uint64_t>(size - 1))), key_(key) {}

int64_t Permutation::at(int64_t position) const {
  if (size_ == 1) return 0;
  // Follow the cycle until it returns into range: under two steps on average, as 2^bits < 2 * size.
  uint64_t value = static_cast<uint64_t>(position);
  do {
    value = feistel(value, bits_, key_);
  } while (value >= static_cast<uint64_t>(size_));
  return static_cast<int64_t>(value);
}

int64_t Permutation::position_of(int64_t value) const {
  if (size_ == 1) return 0;
  uint64_t position = static_cast<uint64_t>(value);
  do {
    position = feistel_inverse(position, bits_, key_);
  } while (position >= static_cast<uint64_t>(size_));
  return static_cast<int64_t>(position);
}

}  // namespace stoker
