#include "tools/profile/run_timeline.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "tools/profile/run_measurements.h"
#include "tools/profile/step_split.h"

namespace stoker {
namespace {

class Timeline {
 public:
  Timeline(int64_t begin_ns, int64_t end_ns, double slice_s)
      : begin_ns_(begin_ns), slice_s_(slice_s) {
    const double length_s = static_cast<double>(end_ns - begin_ns) * 1e-9;
    slices_.resize(static_cast<size_t>(std::max(1.0, std::ceil(length_s / slice_s))));
    for (size_t i = 0; i < slices_.size(); ++i) {
      slices_[i].begin_s = static_cast<double>(i) * slice_s;
      slices_[i].length_s = slice_s;
    }
  }

  // Spreads `weight` per second of [begin, end) over the slices' `field`.
  void spread(int64_t begin_ns, int64_t end_ns, double weight, double TimelineSlice::*field) {
    const double from = since(begin_ns), to = since(end_ns);
    for (auto i = index(from); i <= index(to); ++i) {
      TimelineSlice& slice = slices_[i];
      const double part = std::min(to, slice.begin_s + slice_s_) - std::max(from, slice.begin_s);
      if (part > 0) slice.*field += weight * part / slice_s_;
    }
  }
  std::vector<TimelineSlice> take() { return std::move(slices_); }

 private:
  double since(int64_t ns) const { return static_cast<double>(ns - begin_ns_) * 1e-9; }
  size_t index(double seconds) const {
    const auto slice = static_cast<int64_t>(seconds / slice_s_);
    return static_cast<size_t>(std::clamp<int64_t>(slice, 0, std::ssize(slices_) - 1));
  }

  const int64_t begin_ns_;
  const double slice_s_;
  std::vector<TimelineSlice> slices_;
};

}  // namespace

std::vector<TimelineSlice> timeline_of(const ProfiledRun& run, int rows, int devices,
                                       double slice_s) {
  if (run.windows.empty()) return {};
  const int64_t begin_ns = run.windows.front().begin_ns, end_ns = run.windows.back().end_ns;
  Timeline timeline(begin_ns, end_ns, slice_s);
  std::map<std::pair<int, Step>, int64_t> committed;
  for (const TrackedSpan& span : run.spans) {
    if (span.kind == SpanKind::commit) committed[{span.device, span.step}] = span.end_ns;
  }
  for (const TrackedSpan& span : run.spans) {
    if (span.end_ns < begin_ns || span.begin_ns > end_ns) continue;
    const auto spread = [&](double weight, double TimelineSlice::*field) {
      timeline.spread(span.begin_ns, span.end_ns, weight, field);
    };
    switch (span.kind) {
      case SpanKind::step:
        spread(rows / std::max(seconds_of(span), 1e-9), &TimelineSlice::samples_per_second);
        break;
      case SpanKind::cached_read:
      case SpanKind::decode:
      case SpanKind::pixels:
        spread(1, &TimelineSlice::busy_workers);
        break;
      case SpanKind::read:
        spread(1, &TimelineSlice::busy_readers);
        break;
      case SpanKind::input_wait:
      case SpanKind::copy_wait:
        spread(1.0 / devices, &TimelineSlice::waiting_share);
        break;
      case SpanKind::lease: {
        const auto ready = committed.find({span.device, span.step});
        if (ready == committed.end() || ready->second >= span.begin_ns) break;
        timeline.spread(ready->second, span.begin_ns, 1.0 / devices, &TimelineSlice::ready_batches);
        break;
      }
      default:
        break;
    }
  }
  std::vector<TimelineSlice> slices = timeline.take();
  for (TimelineSlice& slice : slices) {
    const auto middle_ns = begin_ns + static_cast<int64_t>((slice.begin_s + 0.5 * slice_s) * 1e9);
    for (const PhaseWindow& window : run.windows) {
      if (middle_ns >= window.begin_ns && middle_ns < window.end_ns) slice.phase = window.phase;
    }
  }
  return slices;
}

WarmUp measure_warm_up(const ProfiledRun& run) {
  std::vector<const Span*> steps;
  for (const TrackedSpan& span : run.spans) {
    if (span.kind == SpanKind::step && span.device == 0) steps.push_back(&span);
  }
  WarmUp result;
  if (steps.empty() || run.windows.empty()) return result;
  const int64_t begin_ns = std::min(run.windows.front().begin_ns, steps.front()->begin_ns);
  for (const TrackedSpan& span : run.spans) {
    if (span.kind != SpanKind::input_wait || span.step != steps.front()->step) continue;
    result.first_batch_s = static_cast<double>(span.end_ns - begin_ns) * kNanosecond;
  }
  const PhaseWindow& warming = run.windows.front();
  result.left_out_s = static_cast<double>(warming.end_ns - begin_ns) * kNanosecond;
  result.left_out_steps = std::count_if(
      steps.begin(), steps.end(), [&](const Span* step) { return step->end_ns < warming.end_ns; });
  std::vector<double> later;
  for (const Span* step : steps) {
    if (ends_inside(*step, windows_of(run, Phase::measured))) later.push_back(seconds_of(*step));
  }
  if (later.empty()) return result;
  const double usual = latency_of(later).p90;
  // Find the first step from which three steps in a row take no longer than nine of ten later
  // steps.
  constexpr size_t kInARow = 3;
  size_t first = 0;
  while (first + kInARow < steps.size() &&
         std::any_of(steps.begin() + static_cast<ptrdiff_t>(first),
                     steps.begin() + static_cast<ptrdiff_t>(first + kInARow),
                     [&](const Span* step) { return seconds_of(*step) > 1.1 * usual; })) {
    ++first;
  }
  result.steps = static_cast<int64_t>(first);
  const int64_t end_ns = first == 0 ? steps.front()->begin_ns : steps[first - 1]->end_ns;
  result.seconds = static_cast<double>(end_ns - begin_ns) * kNanosecond;
  return result;
}

}  // namespace stoker
