// What an ObjectReader has counted and measured. A value.
#pragma once

#include <cstdint>
#include <string>

namespace stoker {

struct StoreStats {
  int64_t requests = 0;       // sent, with retries and second requests
  int64_t ranges = 0;         // read in full
  int64_t bytes = 0;          // of these ranges
  int64_t bytes_carried = 0;  // over the network, with what was thrown away
  int64_t retries = 0;
  int64_t throttled = 0;            // answers 503 Slow Down and 429
  int64_t second_requests = 0;      // of slow ones
  int64_t second_requests_won = 0;  // that came first
  int64_t failed = 0;
  int requests_wanted = 0;  // under way at once: what measuring has found, or the option
  int requests_under_way = 0;
  int requests_most = 0;     // that may be under way
  int64_t window_bytes = 0;  // of samples that are fetched before they are read, at most
  // Of the last ranges (a few hundred): from the request to the first byte, and to the last.
  double first_byte_ms_median = 0, first_byte_ms_p99 = 0, total_ms_median = 0, total_ms_p99 = 0;
  double bytes_per_second = 0;     // over the time in which at least one request was under way
  double requests_per_second = 0;  // the same
};

// Returns one line: "1.24 GB in 3211 requests, 64 at once; ...".
std::string describe(const StoreStats& stats);

// Adds what was counted; what was measured is that of the one with more bytes.
StoreStats joined(const StoreStats& a, const StoreStats& b);

}  // namespace stoker
