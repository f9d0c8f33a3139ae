// The result of a profiled run: its spans, the threads that made them, and the run's phases.
#pragma once

#include <cstdint>
#include <vector>

#include "staging/tracer.h"
#include "tools/machine/energy.h"
#include "tools/machine/load.h"
#include "tools/profile/gpu_sampler.h"

namespace stoker {

constexpr double kNanosecond = 1e-9;  // seconds

enum class Phase : uint8_t {
  warm_up,
  settling,       // between two phases; counts for neither
  measured,       // the run as it is
  other_workers,  // with another number of workers
  replayed,       // with the same batch again and again
};
const char* to_string(Phase phase);

struct PhaseWindow {
  Phase phase = Phase::warm_up;
  int64_t begin_ns = 0, end_ns = 0;
  int workers = 0;
  MachineLoad load;  // the machine's load in this window
  Energy energy{};   // and what it used
  double seconds() const { return static_cast<double>(end_ns - begin_ns) * kNanosecond; }
};

struct ProfiledRun {
  std::vector<TrackedSpan> spans;
  std::vector<TraceTrack> tracks;
  int64_t dropped = 0;  // spans that were lost
  std::vector<PhaseWindow> windows;
  GpuReadings gpus;  // during the whole run
  NoEnergy no_energy;
};

std::vector<PhaseWindow> windows_of(const ProfiledRun& run, Phase phase);
bool ends_inside(const Span& span, const std::vector<PhaseWindow>& windows);

}  // namespace stoker
