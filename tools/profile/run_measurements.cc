#include "tools/profile/run_measurements.h"

#include <algorithm>

#include "tools/profile/measurement_parts.h"

namespace stoker {
namespace {

void measure_latencies(const ProfiledRun& run, const std::vector<PhaseWindow>& windows,
                       RunMeasurements& result) {
  std::array<std::vector<double>, kSpanKinds> lengths;
  std::array<double, kSpanKinds> cpu_s{};
  std::array<int64_t, kSpanKinds> timed{};
  for (const TrackedSpan& span : run.spans) {
    if (!ends_inside(span, windows)) continue;
    const int kind = static_cast<int>(span.kind);
    const auto items = static_cast<double>(std::max<int64_t>(span.items, 1));
    lengths[kind].push_back(seconds_of(span) / items);
    if (span.cpu_ns < 0) continue;
    cpu_s[kind] += static_cast<double>(span.cpu_ns) * 1e-9 / items;
    ++timed[kind];
  }
  for (int kind = 0; kind < kSpanKinds; ++kind) {
    result.latency[kind] = latency_of(std::move(lengths[kind]));
    if (timed[kind] > 0) {
      result.latency[kind].cpu_mean = cpu_s[kind] / static_cast<double>(timed[kind]);
    }
  }
}

}  // namespace

RunMeasurements measure_run(const ProfiledRun& run, int rows,
                            const std::vector<PhaseWindow>& windows) {
  RunMeasurements result;
  for (const PhaseWindow& window : windows) result.seconds += window.seconds();
  measure_steps(run, rows, windows, result);
  measure_rows(run, windows, result);
  measure_latencies(run, windows, result);
  measure_load(windows, result);
  result.gpus = gpu_loads(run, windows);
  for (const TrackedSpan& span : run.spans) {
    if (span.kind == SpanKind::evaluate) result.evaluate_s += seconds_of(span);
  }
  return result;
}

}  // namespace stoker
