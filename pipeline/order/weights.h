// What the orders that take weights have in common. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace stoker {

// Throws std::invalid_argument, with the first one and its number, for a weight that is negative or
// not finite, for no weight above 0, and for a sum that is not finite. `owner` begins the message.
void check_weights(const std::string& owner, std::span<const double> weights);

// REQUIRES: checked weights.
uint64_t weights_digest(std::span<const double> weights);

}  // namespace stoker
