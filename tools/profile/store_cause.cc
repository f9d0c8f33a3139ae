#include "tools/profile/store_cause.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/store/store_options.h"

namespace stoker {
namespace {

// A larger share of answers "slow down" is what limits.
constexpr double kThrottled = 0.01;
// The memory for samples is full if what is asked for at once comes to this share of it.
constexpr double kFull = 0.75;
// Smaller ranges are a matter of requests, not of bytes.
constexpr double kSmallRange = 256 << 10;
// If the first byte takes a larger share of a request's time, the bytes are not what takes it.
constexpr double kMostlyWaiting = 0.5;

const char* const kShards =
    "larger ranges: samples in shards (stoker pack), of which several are read with one request "
    "where neighbours come together (--shuffle-blocks 16)";
const char* const kNearer =
    "a part of the data on a local disk (--cache DIR --cache-size SIZE), or a store that is nearer";

StoreCause cause_of(const StoreStats& stats, double range_bytes) {
  const auto requests = static_cast<double>(stats.requests);
  if (static_cast<double>(stats.throttled) > kThrottled * requests) return StoreCause::throttled;
  const double asked_for = stats.requests_wanted * range_bytes;
  if (asked_for > kFull * static_cast<double>(stats.window_bytes)) return StoreCause::memory;
  if (stats.requests_wanted >= stats.requests_most) return StoreCause::requests;
  const bool waits = stats.first_byte_ms_median > kMostlyWaiting * stats.total_ms_median;
  return waits && range_bytes < kSmallRange ? StoreCause::answers : StoreCause::bandwidth;
}

}  // namespace

const char* to_string(StoreCause cause) {
  static constexpr const char* kNames[] = {"throttled", "requests", "memory", "answers",
                                           "bandwidth"};
  return kNames[static_cast<int>(cause)];
}

StoreFinding find_store_cause(const StoreStats& stats) {
  const double range_bytes =
      static_cast<double>(stats.bytes) / static_cast<double>(std::max<int64_t>(stats.ranges, 1));
  const std::string rates =
      fmt::format("{:.0f} requests/s of {:.0f} KB, {:.1f} MB/s", stats.requests_per_second,
                  range_bytes / 1e3, stats.bytes_per_second / 1e6);
  StoreFinding finding{cause_of(stats, range_bytes), "", {}};
  switch (finding.cause) {
    case StoreCause::throttled:
      finding.text = fmt::format("the store told {} of {} requests to slow down; it gives {}",
                                 stats.throttled, stats.requests, rates);
      finding.cures = {kShards, kNearer, "fewer processes that read at once"};
      break;
    case StoreCause::memory:
      finding.text = fmt::format(
          "the memory for samples that are fetched ahead, {} MiB, is full with {} requests under "
          "way, of which each takes {:.0f} ms; the store gives {}",
          stats.window_bytes >> 20, stats.requests_wanted, stats.total_ms_median, rates);
      finding.cures = {
          fmt::format("more memory for them (--store-memory {})", (stats.window_bytes >> 20) * 2)};
      break;
    case StoreCause::requests:
      finding.text = fmt::format(
          "all {} requests that are allowed are under way, and each takes {:.0f} ms; the store "
          "gives {}",
          stats.requests_most, stats.total_ms_median, rates);
      if (stats.requests_most < StoreOptions::kMaxRequests) {
        finding.cures.push_back("more requests at once (--store-requests 0)");
      }
      if (range_bytes < kSmallRange) finding.cures.push_back(kShards);
      finding.cures.push_back(kNearer);
      break;
    case StoreCause::answers:
      finding.text = fmt::format(
          "the store answers no more than {}, and more than {} requests at once do not help: the "
          "first byte takes {:.0f} of {:.0f} ms",
          rates, stats.requests_wanted, stats.first_byte_ms_median, stats.total_ms_median);
      finding.cures = {kShards, kNearer};
      break;
    case StoreCause::bandwidth:
      finding.text = fmt::format(
          "the way from the store carries no more than {}, and more than {} requests at once do "
          "not help",
          rates, stats.requests_wanted);
      finding.cures = {"smaller images in the store", kNearer};
      break;
  }
  return finding;
}

}  // namespace stoker
