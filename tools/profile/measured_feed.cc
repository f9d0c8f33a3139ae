#include "tools/profile/measured_feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace stoker {
namespace {

// Images/s of a device that never lets a feed wait.
constexpr double kAnyRate = 1e9;

double cpu_ms_of(const RunMeasurements& measured) {
  const double cores = measured.own_cores >= 0 ? measured.own_cores
                                               : measured.busy_workers * measured.worker_cpu_speed;
  return 1e3 * cores / measured.samples_per_second;
}

}  // namespace

MeasuredFeed measure_full_feed(const Source& source, const AugmentSpec& augment,
                               const LoaderOptions& options, double seconds) {
  FeedRun how;
  how.demand = kAnyRate;
  how.seconds = seconds;
  ProfiledRun run;
  const Profile profile = profile_emulated(source, augment, options, how, run);
  MeasuredFeed feed;
  feed.shape = profile.measurements.shape;
  feed.measured = profile.measurements.measured;
  if (!feed.model().possible()) {
    throw std::runtime_error(fmt::format(
        "{}: {} steps in {:.2g} s are too few to measure the feed: measure longer, or in smaller "
        "batches than {} samples",
        source.root(), feed.measured.steps, feed.measured.seconds, options.batch_size));
  }
  feed.cpu_ms = feed.cpu_ms_low = feed.cpu_ms_high = cpu_ms_of(feed.measured);
  for (const PhaseWindow& window : windows_of(run, Phase::measured)) {
    const RunMeasurements part = measure_run(run, feed.shape.rows, {window});
    if (part.samples_per_second <= 0) continue;
    feed.cpu_ms_low = std::min(feed.cpu_ms_low, cpu_ms_of(part));
    feed.cpu_ms_high = std::max(feed.cpu_ms_high, cpu_ms_of(part));
  }
  feed.worker_bytes = profile.scratch_bytes / std::max(1, feed.shape.workers);
  return feed;
}

}  // namespace stoker
