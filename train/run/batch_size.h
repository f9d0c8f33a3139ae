// Finds the largest batch that fits into memory (--batch auto), by bisection over what the engines
// and the feed plan to allocate, and gives the reason with numbers. Threads: any. Errors:
// std::runtime_error if not even the smallest batch fits, with the needed and the available bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace stoker {

struct BatchLimits {
  int64_t step = 1;          // rows come in multiples of this
  int64_t most_rows = 1;     // upper bound
  int64_t memory_bytes = 0;  // that may be used
  // Returns the bytes that `rows` need; increases with `rows`.
  std::function<int64_t(int64_t rows)> bytes;
  std::string memory_name;  // "80% of the 12.3 GiB that are free"
  std::string most_name;    // reason for most_rows: "the 50000 training samples"
};

struct BatchChoice {
  int64_t rows = 0;
  std::string reason;
};

BatchChoice largest_batch(const BatchLimits& limits);

// Returns the free memory of the machine, or of this process's control group if that is less.
int64_t free_host_bytes();

}  // namespace stoker
