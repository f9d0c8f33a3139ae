#include "pipeline/order/weights.h"

#include <bit>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "pipeline/files/digest.h"

namespace stoker {

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

}  // namespace stoker
