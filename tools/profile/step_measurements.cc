#include <algorithm>
#include <numeric>

#include "tools/profile/measurement_parts.h"

namespace stoker {
namespace {

// The time in which the run saved and evaluated between two steps; it belongs to neither of them.
class Interludes {
 public:
  explicit Interludes(const ProfiledRun& run) {
    for (const TrackedSpan& span : run.spans) {
      if (span.kind == SpanKind::evaluate || span.kind == SpanKind::checkpoint) {
        spans_.push_back(&span);
      }
    }
  }
  double seconds(int64_t begin_ns, int64_t end_ns) const {
    double sum = 0;
    for (const Span* span : spans_) sum += overlap_seconds(begin_ns, end_ns, span);
    return sum;
  }

 private:
  std::vector<const Span*> spans_;
};

void add(StepSplit& sum, const StepSplit& one) {
  sum.step += one.step;
  sum.compute += one.compute;
  sum.input_wait += one.input_wait;
  sum.copy_wait += one.copy_wait;
  sum.gradient_wait += one.gradient_wait;
  sum.launch_wait += one.launch_wait;
  sum.update += one.update;
  sum.other += one.other;
}

void divide(StepSplit& sum, double by) {
  for (double* part : {&sum.step, &sum.compute, &sum.input_wait, &sum.copy_wait, &sum.gradient_wait,
                       &sum.launch_wait, &sum.update, &sum.other}) {
    *part /= by;
  }
}

// Returns how even the pace is, over eight parts of the steps.
double spread_of(const std::vector<double>& lengths) {
  constexpr size_t kParts = 8;
  if (lengths.size() < 2 * kParts) return -1;
  std::vector<double> paces;
  for (size_t part = 0; part < kParts; ++part) {
    const auto begin = lengths.begin() + static_cast<ptrdiff_t>(part * lengths.size() / kParts);
    const auto end = lengths.begin() + static_cast<ptrdiff_t>((part + 1) * lengths.size() / kParts);
    paces.push_back(std::accumulate(begin, end, 0.0) / static_cast<double>(end - begin));
  }
  std::sort(paces.begin(), paces.end());
  return 0.5 * (paces[6] - paces[1]) / paces[4];
}

Pauses pauses_of(const std::vector<StepSplit>& steps) {
  // Pauses are at most this share of the steps and contain at least that share of the waiting.
  constexpr double kFewest = 0.25;
  constexpr double kMax = 0.8;
  Pauses pauses;
  double all_s = 0, paused_s = 0;
  for (const StepSplit& step : steps) {
    const double wait_s = step.input_wait + step.copy_wait;
    all_s += wait_s;
    if (wait_s <= step.step - wait_s) continue;
    ++pauses.count;
    paused_s += wait_s;
  }
  const auto count = static_cast<double>(steps.size()), paused = static_cast<double>(pauses.count);
  if (pauses.count == 0 || paused > kFewest * count || paused_s < kMax * all_s) return {};
  pauses.mean_s = paused_s / paused;
  pauses.share = paused_s / all_s;
  pauses.burst_steps = count / paused;
  return pauses;
}

// Returns the rate at which rows are filled, if it is below the rate `taken`: while a feed still
// uses up a full ring, it fills fewer rows than are taken.
double pace_of_filling(const ProfiledRun& run, int rows, int devices,
                       const std::vector<PhaseWindow>& windows, double stepping_s, double taken) {
  const auto commits = std::count_if(run.spans.begin(), run.spans.end(), [&](const Span& span) {
    return span.kind == SpanKind::commit && ends_inside(span, windows);
  });
  const double filled = static_cast<double>(commits) * rows / stepping_s;
  // At the edges of the windows there may be one batch more or less.
  const double slack = 1.5 * rows * devices / stepping_s;
  return filled > 0 && filled + slack < 0.97 * taken ? filled : taken;
}

}  // namespace

void measure_steps(const ProfiledRun& run, int rows, const std::vector<PhaseWindow>& windows,
                   RunMeasurements& result) {
  const StepTable table = step_table(run);
  if (table.empty() || windows.empty()) return;
  const Interludes interludes(run);
  const int devices = table.rbegin()->first.first + 1;
  std::vector<double> lengths;
  std::vector<StepSplit> splits;
  for (auto at = std::next(table.begin()); at != table.end(); ++at) {
    const auto& [key, spans] = *at;
    const auto& [last_key, last] = *std::prev(at);
    const Span *step = spans[SpanKind::step], *before = last[SpanKind::step];
    const bool follows = last_key.first == key.first && last_key.second + 1 == key.second;
    if (!follows || !step || !before) continue;
    if (!ends_inside(*step, windows) || !ends_inside(*before, windows)) continue;
    const StepParts parts =
        split_step(last, spans, interludes.seconds(before->end_ns, step->end_ns));
    add(result.split, parts.split);
    splits.push_back(parts.split);
    lengths.push_back(parts.split.step);
    result.hold_s.push_back(parts.hold);
    result.rest_s.push_back(parts.rest);
    if (spans[SpanKind::copy]) result.copy_s.push_back(seconds_of(*spans[SpanKind::copy]));
  }
  if (lengths.empty()) return;
  divide(result.split, static_cast<double>(lengths.size()));
  result.steps = std::ssize(lengths) / devices;
  result.samples_per_second = rows * devices / result.split.step;
  result.spread = spread_of(lengths);
  result.pauses = pauses_of(splits);
  if (windows.front().phase == Phase::replayed) return;
  double stepping_s = result.seconds;
  for (const PhaseWindow& each : windows) {
    stepping_s -= interludes.seconds(each.begin_ns, each.end_ns);
  }
  result.samples_per_second =
      pace_of_filling(run, rows, devices, windows, stepping_s, result.samples_per_second);
}

}  // namespace stoker
