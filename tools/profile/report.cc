#include "tools/profile/report.h"

#include <algorithm>

namespace stoker {
namespace {

// The number of slices of a timeline.
constexpr double kSlices = 100;

}  // namespace

Profile make_profile(const ProfiledRun& run, const FeedShape& shape, const StorageRates& storage,
                     const std::optional<StoreStats>& store,
                     const std::function<std::string(SampleId)>& name_of) {
  Profile profile;
  ProfileMeasurements& measurements = profile.measurements;
  measurements.shape = shape;
  measurements.storage = storage;
  measurements.store = store;
  measurements.dropped_spans = run.dropped;
  measurements.no_gpus = run.gpus.no_gpus;
  measurements.measured = measure_run(run, shape.rows, windows_of(run, Phase::measured));
  measurements.replayed = measure_run(run, shape.rows, windows_of(run, Phase::replayed));
  const auto other = windows_of(run, Phase::other_workers);
  if (!other.empty() && other.front().workers != shape.workers) {
    measurements.other = measure_run(run, shape.rows, other);
    measurements.other_workers = other.front().workers;
  }
  profile.warm_up = measure_warm_up(run);
  profile.verdict = diagnose(measurements);
  double length_s = 0;
  for (const PhaseWindow& window : run.windows) {
    length_s += window.seconds();
    profile.resident_bytes = std::max(profile.resident_bytes, window.load.resident_bytes);
  }
  if (length_s > 0) {
    profile.timeline = timeline_of(run, shape.rows, shape.devices, length_s / kSlices);
  }
  for (const SlowFile& file : measurements.measured.slowest) {
    profile.slow_names.push_back(name_of(file.sample));
  }
  return profile;
}

}  // namespace stoker
