#include "pipeline/store/store_stats.h"

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
  return all;
}

}  // namespace stoker
