#include "pipeline/store/store_stats.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace stoker {

std::string describe(const StoreStats& stats) {
  std::array<char, 256> text;
  std::snprintf(text.data(), text.size(),
                "%.3g GB in %lld requests, up to %d at once; half of them took less than %.3g ms, "
                "99%% less than %.3g ms",
                static_cast<double>(stats.bytes_carried) / 1e9,
                static_cast<long long>(stats.requests), stats.requests_wanted,
                stats.total_ms_median, stats.total_ms_p99);
  std::string line = text.data();
  const auto add = [&line](int64_t count, const char* what) {
    if (count > 0) line += "; " + std::to_string(count) + what;
  };
  add(stats.retries, " tried again");
  add(stats.throttled, " told to slow down");
  add(stats.second_requests, " slow ones asked for a second time");
  return line;
}

std::string describe_cache(const StoreStats& stats) {
  const int64_t samples = stats.cache_hits + stats.cache_misses;
  std::array<char, 256> text;
  std::snprintf(
      text.data(), text.size(),
      "%lld of %lld samples came from it (%.2f%%), and %.6g GB of samples from the "
      "store; %.3g GB were written to it",
      static_cast<long long>(stats.cache_hits), static_cast<long long>(samples),
      samples > 0 ? 100.0 * static_cast<double>(stats.cache_hits) / static_cast<double>(samples)
                  : 0.0,
      static_cast<double>(stats.bytes) / 1e9, static_cast<double>(stats.cache_kept_bytes) / 1e9);
  std::string line = text.data();
  if (!stats.cache_problem.empty()) line += "; no more, because of " + stats.cache_problem;
  return line;
}

double StoredBytes::share() const {
  return bytes > 0 ? static_cast<double>(cache_bytes) / static_cast<double>(bytes) : 0;
}

double StoredBytes::leaving(double epochs) const {
  const double first = std::min(epochs, 1.0) * static_cast<double>(bytes - kept_bytes);
  return first + std::max(epochs - 1, 0.0) * static_cast<double>(bytes - cache_bytes);
}

StoreStats joined(const StoreStats& a, const StoreStats& b) {
  StoreStats all = a.bytes >= b.bytes ? a : b;
  const StoreStats& other = a.bytes >= b.bytes ? b : a;
  all.requests += other.requests;
  all.ranges += other.ranges;
  all.bytes += other.bytes;
  all.bytes_carried += other.bytes_carried;
  all.retries += other.retries;
  all.throttled += other.throttled;
  all.second_requests += other.second_requests;
  all.second_requests_won += other.second_requests_won;
  all.failed += other.failed;
  all.has_cache = all.has_cache || other.has_cache;
  all.cache_hits += other.cache_hits;
  all.cache_misses += other.cache_misses;
  all.cache_kept_bytes += other.cache_kept_bytes;
  if (all.cache_problem.empty()) all.cache_problem = other.cache_problem;
  return all;
}

StoredBytes joined(const StoredBytes& a, const StoredBytes& b) {
  StoredBytes all = a;
  all.samples += b.samples;
  all.bytes += b.bytes;
  all.cache_samples += b.cache_samples;
  all.cache_bytes += b.cache_bytes;
  all.kept_bytes += b.kept_bytes;
  if (!b.cache.empty()) all.cache += (all.cache.empty() ? "" : ", ") + b.cache;
  if (all.problem.empty()) all.problem = b.problem;
  return all;
}

}  // namespace stoker
