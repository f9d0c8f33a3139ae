#include "pipeline/order/order_parts.h"

#include <bit>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "pipeline/files/digest.h"
#include "pipeline/sample_order.h"

namespace stoker {
namespace {

Permutation order_of_pass(uint64_t pass, uint64_t seed, int64_t members) {
  return {members, EpochKey(seed, static_cast<int64_t>(pass)).shuffle};
}

}  // namespace

void check_weights(const std::string& owner, std::span<const double> weights) {
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] >= 0) || std::isinf(weights[i])) {
      throw std::invalid_argument(
          owner + ": weight " + std::to_string(i) + " of " + std::to_string(weights.size()) +
          " is " + std::to_string(weights[i]) + ", must be a finite number, 0 or more");
    }
    sum += weights[i];
  }
  if (sum > 0 && !std::isinf(sum)) return;
  throw std::invalid_argument(owner + ": the sum of " + std::to_string(weights.size()) +
                              " weights is " + std::to_string(sum) +
                              ", must be finite and above 0");
}

uint64_t weights_digest(std::span<const double> weights) {
  std::vector<uint64_t> words;
  words.reserve(weights.size());
  // The sum with 0 makes 0 of -0.
  for (const double weight : weights) words.push_back(std::bit_cast<uint64_t>(weight + 0.0));
  return digest128(words).low;
}

PassMember Passes::at(uint64_t index, uint64_t mark) const {
  const auto members = static_cast<uint64_t>(members_);
  const uint64_t pass = index / members, first_pass = mark / members;
  const int64_t member =
      order_of_pass(pass, seed_, members_).at(static_cast<int64_t>(index % members));
  if (pass == first_pass) return {member, 0};
  // It came in every pass in between, and in the first one unless that was before the mark.
  const int64_t place_then = order_of_pass(first_pass, seed_, members_).position_of(member);
  const bool came_before = static_cast<uint64_t>(place_then) < mark % members;
  return {member, pass - first_pass - (came_before ? 1 : 0)};
}

}  // namespace stoker
