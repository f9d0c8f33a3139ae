// The bytes that leave and enter a replica, by kind. Collectives count them for each replica of the
// process as if it were alone on its machine: what replicas that share memory read from one another
// counts as what a wire would carry. Values; pure.
#pragma once

#include <cstdint>

namespace stoker {

struct Traffic {
  // Gradients include the moments and step metrics behind them, and their sums.
  int64_t gradients_sent = 0, gradients_received = 0;
  int64_t weights_sent = 0, weights_received = 0;

  Traffic& operator+=(const Traffic& other) {
    gradients_sent += other.gradients_sent;
    gradients_received += other.gradients_received;
    weights_sent += other.weights_sent;
    weights_received += other.weights_received;
    return *this;
  }
  Traffic operator-(const Traffic& other) const {
    return {gradients_sent - other.gradients_sent, gradients_received - other.gradients_received,
            weights_sent - other.weights_sent, weights_received - other.weights_received};
  }
  bool operator==(const Traffic&) const = default;
};

// An exact sum of `bytes` over `size` replicas: a chain passes the sum so far from the first to the
// last of them, and the total back. Returns what `count` replicas from `first` on send and receive.
constexpr Traffic chain_traffic(int first, int count, int size, int64_t bytes) {
  const int ends = (first == 0 ? 1 : 0) + (first + count == size ? 1 : 0);
  const int64_t sum = (2 * count - ends) * bytes;
  return {sum, sum, 0, 0};
}

}  // namespace stoker
