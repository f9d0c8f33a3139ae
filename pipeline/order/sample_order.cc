#include "pipeline/sample_order.h"

#include <stdexcept>

#include "pipeline/order/order_parts.h"
#include "pipeline/random/random_key.h"

namespace stoker {
namespace {

constexpr int64_t kMaxPositions = int64_t{1} << 40;

int64_t checked_count(const char* kind, const char* what, int64_t value) {
  if (value >= 1 && value <= kMaxPositions) return value;
  throw std::invalid_argument(std::string(kind) + " order: " + what + " is " +
                              std::to_string(value) + ", must be 1 to 2^40");
}

PermutationKey shuffle_key(uint64_t seed, int64_t epoch) {
  const RandomKey random(seed, epoch, -1);
  return {random.bits(0), random.bits(1) | 1};
}

}  // namespace

EpochKey::EpochKey(uint64_t seed_in, int64_t epoch_in)
    : seed(seed_in), epoch(epoch_in), shuffle(shuffle_key(seed_in, epoch_in)) {}

SampleOrder::SampleOrder(const char* kind, int64_t samples, int64_t length)
    : samples_(checked_count(kind, "samples", samples)),
      length_(checked_count(kind, "length", length)) {}

uint64_t repeat_seed(uint64_t seed, uint64_t repeat_index) {
  if (repeat_index == 0) return seed;
  return RandomKey(seed, static_cast<int64_t>(repeat_index), 0).bits(kRepeatSeed);
}

}  // namespace stoker
