// The largest batch that the memory holds (--batch auto). It is found by bisection over what the
// engines and the feed plan to allocate, and its reason is told with numbers. Threads: any. Errors:
// std::runtime_error if not even the smallest batch fits, with what it takes and what there is.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace stoker {

struct BatchLimits {
  int64_t step = 1;          // rows come in multiples of this
  int64_t most_rows = 1;     // more make no sense
  int64_t memory_bytes = 0;  // that may be taken
  // What so many rows take: the more rows, the more bytes.
  std::function<int64_t(int64_t rows)> bytes;
  std::string memory_name;  // "80% of the 12.3 GiB that are free"
  std::string most_name;    // why no more than most_rows: "the 50000 training samples"
};

struct BatchChoice {
  int64_t rows = 0;
  std::string reason;
};

BatchChoice largest_batch(const BatchLimits& limits);

// What is free on the machine, or in this process's control group where that is less.
int64_t free_host_bytes();

}  // namespace stoker
