// Why a store delivers no more samples, from what its reader has counted, and what would help.
// Pure.
#pragma once

#include <string>
#include <vector>

#include "pipeline/store/store_stats.h"

namespace stoker {

enum class StoreCause : uint8_t {
  throttled,  // it told to slow down (503, 429)
  requests,   // as many requests are under way as are allowed, and each takes long
  memory,     // the memory for samples that are fetched ahead is full
  answers,    // it answers no more requests per second, however many are under way
  bandwidth,  // the bytes of the answers take the time
};
const char* to_string(StoreCause cause);

struct StoreFinding {
  StoreCause cause = StoreCause::bandwidth;
  std::string text;                // a sentence with the numbers
  std::vector<std::string> cures;  // the smallest change first
};

// REQUIRES: at least one range was read.
StoreFinding find_store_cause(const StoreStats& stats);

}  // namespace stoker
