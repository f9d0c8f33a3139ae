#include "tools/profile/warm_up.h"

#include <algorithm>

#include "tools/profile/latency.h"
#include "tools/profile/step_split.h"

namespace stoker {
namespace {}  // namespace

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
