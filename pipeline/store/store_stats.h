// Counts and times of an ObjectReader. A value.
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
  // Times of the last ranges (a few hundred): from the request to the first byte, and to the last.
  double first_byte_ms_median = 0, first_byte_ms_p99 = 0, total_ms_median = 0, total_ms_p99 = 0;
  double bytes_per_second = 0;     // over the time in which at least one request was under way
  double requests_per_second = 0;  // the same
  // Counts of a cache on this machine: samples that came from it, samples that did not,
  // bytes that were written to it, and why nothing is kept any more ("": it is).
  bool has_cache = false;
  int64_t cache_hits = 0, cache_misses = 0;
  int64_t cache_kept_bytes = 0;
  std::string cache_problem{};
};

// Calls visit(name, value) for what users see, by the names that Python and profiles have.
template <class Visit>
void for_each_figure(const StoreStats& stats, const Visit& visit) {
  visit("requests", stats.requests);
  visit("ranges", stats.ranges);
  visit("bytes", stats.bytes);
  visit("bytes_carried", stats.bytes_carried);
  visit("retries", stats.retries);
  visit("throttled", stats.throttled);
  visit("second_requests", stats.second_requests);
  visit("second_requests_won", stats.second_requests_won);
  visit("requests_at_once", stats.requests_wanted);
  visit("requests_at_most", stats.requests_most);
  visit("first_byte_ms_median", stats.first_byte_ms_median);
  visit("first_byte_ms_p99", stats.first_byte_ms_p99);
  visit("total_ms_median", stats.total_ms_median);
  visit("total_ms_p99", stats.total_ms_p99);
  visit("bytes_per_second", stats.bytes_per_second);
  visit("requests_per_second", stats.requests_per_second);
}

// How much of a data set is in a store, and how much of that has a place in a cache on this
// machine. A value.
struct StoredBytes {
  int64_t samples = 0, bytes = 0;
  int64_t cache_samples = 0, cache_bytes = 0;
  int64_t kept_bytes = 0;  // in the cache when the data set was opened
  std::string cache{};     // its folder; "": there is none
  std::string problem{};   // why nothing is kept there; "": it is
  double share() const;    // f: of the bytes, that have a place in the cache
  // How many bytes leave the store in so many epochs in which every sample comes once:
  // bytes x (1 + (epochs - 1) x (1 - f)), less what was in the cache before.
  double leaving(double epochs) const;
};

// Returns one line: "1.24 GB in 3211 requests, 64 at once; ...".
std::string describe(const StoreStats& stats);
// The same for the cache: "640 of 1280 samples came from it (50.00%); ...".
std::string describe_cache(const StoreStats& stats);

// Adds what was counted; what was measured is that of the one with more bytes.
StoreStats joined(const StoreStats& a, const StoreStats& b);
StoredBytes joined(const StoredBytes& a, const StoredBytes& b);

}  // namespace stoker
