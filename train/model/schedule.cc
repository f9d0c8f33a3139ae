#include "train/model/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "pipeline/files/invalid_field.h"

namespace stoker {
namespace {

constexpr double kMaxEpochs = 1e6;  // as in Recipe::validate()

void require_schedule(bool ok, const char* field, double value, const char* rule) {
  if (ok) return;
  throw InvalidField("schedule", field, fmt::format(" is {:g}, but must be {}", value, rule));
}

int64_t warmup_of(const ScheduleSpec& spec, int64_t total_steps, int64_t steps_per_epoch) {
  if (spec.warmup_steps > 0) return std::min(spec.warmup_steps, total_steps);
  const auto steps =
      static_cast<int64_t>(std::llround(spec.warmup_epochs * static_cast<double>(steps_per_epoch)));
  return std::min(steps, total_steps);
}

double step_factor(const ScheduleSpec& spec, double share) {
  double factor = 1;
  for (const double milestone : spec.milestones) {
    if (share >= milestone) factor *= spec.gamma;
  }
  return factor;
}

// As in airbench94: the peak is at floor(peak * total), and the line reaches `end` one step after
// the last step.
double triangle_factor(const ScheduleSpec& spec, int64_t step, int64_t total_steps) {
  const auto total = static_cast<double>(total_steps);
  const double peak = std::floor(spec.peak * total);
  const auto at = static_cast<double>(step);
  if (at < peak) return spec.start + (1 - spec.start) * at / peak;
  return 1 - (1 - spec.end) * (at - peak) / (total - peak);
}

}  // namespace

void ScheduleSpec::validate() const {
  require_schedule(warmup_epochs >= 0 && warmup_epochs <= kMaxEpochs, "warmup_epochs",
                   warmup_epochs, "in [0, 1e6]");
  require_schedule(warmup_steps >= 0, "warmup_steps", static_cast<double>(warmup_steps), ">= 0");
  require_schedule(warmup_steps == 0 || warmup_epochs == 0, "warmup_steps",
                   static_cast<double>(warmup_steps), "0 where `warmup_epochs` is not");
  require_schedule(warmup_start >= 0 && warmup_start <= 1, "warmup_start", warmup_start,
                   "in [0, 1]");
  require_schedule(start >= 0 && start <= 1, "start", start, "in [0, 1]");
  require_schedule(end >= 0 && end <= 1, "end", end, "in [0, 1]");
  require_schedule(peak > 0 && peak < 1, "peak", peak, "in (0, 1)");
  require_schedule(gamma > 0 && gamma <= 1, "gamma", gamma, "in (0, 1]");
  double previous = 0;
  for (const double milestone : milestones) {
    require_schedule(milestone > previous && milestone < 1, "milestones", milestone,
                     "an ascending share of the run in (0, 1)");
    previous = milestone;
  }
  if (kind == ScheduleKind::step && milestones.empty()) {
    throw InvalidField("schedule", "milestones", " are none, so that the rate would never fall");
  }
  if (kind == ScheduleKind::triangle) {
    require_schedule(warmup_epochs == 0, "warmup_epochs", warmup_epochs, "0 with triangle");
    require_schedule(warmup_steps == 0, "warmup_steps", static_cast<double>(warmup_steps),
                     "0 with triangle");
  }
}

std::string ScheduleSpec::describe() const {
  std::string text;
  switch (kind) {
    case ScheduleKind::constant:
      text = "constant";
      break;
    case ScheduleKind::step:
      text = fmt::format("x {:g} at", gamma);
      for (const double share : milestones) text += fmt::format(" {:g} %", 100 * share);
      break;
    case ScheduleKind::cosine:
      text = fmt::format("cosine to {:g}", end);
      break;
    case ScheduleKind::triangle:
      text = fmt::format("triangle {:g} - 1 at {:g} % - {:g}", start, 100 * peak, end);
      break;
  }
  if (warmup_epochs > 0) {
    text += fmt::format(", warm-up from {:g} over {:g} epochs", warmup_start, warmup_epochs);
  }
  if (warmup_steps > 0) {
    text += fmt::format(", warm-up from {:g} over {} steps", warmup_start, warmup_steps);
  }
  return text;
}

double schedule_factor(const ScheduleSpec& spec, int64_t step, int64_t total_steps,
                       int64_t steps_per_epoch) {
  const int64_t warmup = warmup_of(spec, total_steps, steps_per_epoch);
  if (step < warmup && spec.kind != ScheduleKind::triangle) {
    return spec.warmup_start +
           (1 - spec.warmup_start) * static_cast<double>(step + 1) / static_cast<double>(warmup);
  }
  switch (spec.kind) {
    case ScheduleKind::constant:
      return 1;
    case ScheduleKind::step:
      return step_factor(spec, static_cast<double>(step) / static_cast<double>(total_steps));
    case ScheduleKind::cosine: {
      const double share =
          static_cast<double>(step - warmup) / static_cast<double>(total_steps - warmup);
      return spec.end + (1 - spec.end) * 0.5 * (1 + std::cos(std::numbers::pi * share));
    }
    case ScheduleKind::triangle:
      return triangle_factor(spec, step, total_steps);
  }
  return 1;
}

}  // namespace stoker
