#include "tools/profile/step_split.h"

#include <algorithm>

namespace stoker {
namespace {

bool once_per_step(SpanKind kind) {
  return kind == SpanKind::copy || kind == SpanKind::input_wait || kind == SpanKind::copy_wait ||
         kind == SpanKind::lease || kind == SpanKind::launch || kind == SpanKind::compute ||
         kind == SpanKind::reduce || kind == SpanKind::update || kind == SpanKind::step;
}

// Splits one step, from the end of the step before it to its own end.
class Splitter {
 public:
  Splitter(const StepSpans& last, const StepSpans& step, double apart)
      : last_(last), step_(step), queued_(step[SpanKind::launch] != nullptr) {
    split_.step = period() - apart;
    queued_ ? split_device() : split_host();
    split_.other =
        std::max(0.0, split_.step - split_.compute - split_.input_wait - split_.copy_wait -
                          std::max(0.0, split_.gradient_wait) - split_.launch_wait - split_.update);
  }
  const StepSplit& split() const { return split_; }
  // The time in which the batch is held, and the rest of the step, both without waits.
  double hold() const {
    const Span* lease = step_[SpanKind::lease];
    if (queued_ || !lease) return split_.compute;
    return std::max(0.0, seconds_of(*lease) - split_.copy_wait);
  }
  double rest() const {
    return std::max(0.0, split_.step - hold() - split_.input_wait - split_.copy_wait);
  }

 private:
  double period() const {
    const SpanKind mark = queued_ ? SpanKind::compute : SpanKind::step;
    if (!step_[mark] || !last_[mark]) return step_.length(SpanKind::step);
    return static_cast<double>(step_[mark]->end_ns - last_[mark]->end_ns) * kNanosecond;
  }
  void split_host() {
    split_.compute = step_.length(SpanKind::compute);
    split_.input_wait = step_.length(SpanKind::input_wait);
    split_.copy_wait = step_.length(SpanKind::copy_wait);
    split_.gradient_wait = step_.length(SpanKind::reduce);
    split_.update = step_.length(SpanKind::update);
  }
  // The device's own time: how long it computes, and why it was idle before.
  void split_device() {
    const Span* compute = step_[SpanKind::compute];
    const Span* before = last_[SpanKind::compute];
    split_.compute = step_.length(SpanKind::compute);
    split_.gradient_wait = -1;
    if (!compute || !before) return;
    const int64_t from = before->end_ns, to = compute->begin_ns;
    split_.input_wait = overlap_seconds(from, to, step_[SpanKind::input_wait]);
    const double copy = overlap_seconds(from, to, step_[SpanKind::copy]);
    const double launch = overlap_seconds(from, to, step_[SpanKind::launch]);
    split_.launch_wait = std::max(0.0, launch - copy);
    split_.copy_wait = std::min(
        copy, std::max(0.0, static_cast<double>(to - from) * kNanosecond - split_.input_wait));
  }

  const StepSpans& last_;
  const StepSpans& step_;
  const bool queued_;
  StepSplit split_;
};

}  // namespace

StepTable step_table(const ProfiledRun& run) {
  StepTable table;
  for (const TrackedSpan& span : run.spans) {
    if (!once_per_step(span.kind) || span.step < 0) continue;
    const Span*& place = table[{span.device, span.step}].of[static_cast<int>(span.kind)];
    // A replayed batch was leased in an earlier step than the one that uses it.
    if (!place) place = &span;
  }
  return table;
}

double StepSpans::length(SpanKind kind) const {
  return (*this)[kind] ? seconds_of(*(*this)[kind]) : 0;
}

StepParts split_step(const StepSpans& last, const StepSpans& step, double apart) {
  const Splitter splitter(last, step, apart);
  return {splitter.split(), splitter.hold(), splitter.rest()};
}

double seconds_of(const Span& span) {
  return static_cast<double>(span.end_ns - span.begin_ns) * kNanosecond;
}

double overlap_seconds(int64_t begin_ns, int64_t end_ns, const Span* span) {
  if (!span) return 0;
  const int64_t common = std::min(end_ns, span->end_ns) - std::max(begin_ns, span->begin_ns);
  return common > 0 ? static_cast<double>(common) * kNanosecond : 0;
}

}  // namespace stoker
