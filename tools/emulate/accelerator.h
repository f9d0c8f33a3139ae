// Accelerators that are not there: a step is a sleep of the length that a real one was measured to
// take, so that a machine without any can be asked how many it would feed. And accelerator
// utilisation by the rules of MLPerf Storage.
//
// The rules, as read from github.com/mlcommons/storage at caa90c9 (Submission_guidelines.md,
// section 4) and github.com/argonne-lcf/dlio_benchmark at e1919d7 (statscounter.py,
// compute_metrics_train; main.py, _train), which carries them out:
//   AU = compute time / running time, of every accelerator; the result is their mean.
//   The first step, loading and computing, is left out of both.
//   After each step all accelerators wait for each other, as for an all-reduce; the wait counts as
//   running time.
//   A result is the mean of 5 runs. ResNet-50 passes at 90 %.
// Compute time is the step's nominal length, as the guidelines' formula has it, not the measured
// sleep, which is longer where the machine is busy.
// Two departures:
//   An accelerator keeps its own time. A thread that the machine wakes late from its sleep is not
//   the feed's doing, and an accelerator that is late by it would ask for less than a real one; so
//   the next step begins when this one should have ended, if its batch lay there. Where a whole
//   step cannot make up for it, the rest is named: late_seconds.
//   The first step is left out whole, with the wait for the others behind it: on one machine the
//   first batches come one after another. Of the guidelines' 500 steps nobody would see it.
// So running time = compute time + waiting for batches + waiting for others + woken late.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace stoker {

inline constexpr double kPassUtilisation = 0.90;  // MLPerf Storage, ResNet-50
inline constexpr double kFullUtilisation = 0.99;  // nobody would notice the feed

struct AcceleratorSpec {
  std::string name;
  int batch = 400;          // rows of a step
  double step_seconds = 0;  // of computing
  std::string source;       // where the figure comes from
  double images_per_second() const { return batch / step_seconds; }
};

// a100 and h100 as MLPerf Storage emulates them; h100-training and h200-training as fast as one GPU
// of eight trained in MLPerf Training.
std::span<const AcceleratorSpec> known_accelerators();
// Throws std::invalid_argument that lists the known names.
const AcceleratorSpec& find_accelerator(const std::string& name);
// One that takes so many images per second. Throws std::invalid_argument unless both are > 0.
AcceleratorSpec accelerator_of_rate(double images_per_second, int batch);

// Time as an accelerator sees it: tests bring their own. Threads: any.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual double seconds() = 0;  // since some moment
  virtual void sleep(double seconds) = 0;
};

Clock& steady_clock();

// The end of a step in an accelerator's own time: computing would have been done then, had the
// machine not woken it `late` seconds later than a whole step can make up for.
struct StepEnd {
  double done = 0;
  double late = 0;
  double seconds() const { return done + late; }
};
// The end of the step for all of them, who wait for each other.
StepEnd end_of_all(std::span<const StepEnd> all);

struct StepTimes {   // seconds of the accelerator's own time
  double asked = 0;  // for the batch
  double came = 0;   // the batch
  double done = 0;   // computing, as in StepEnd
  StepEnd all{};     // end_of_all(), where the next step begins
};

// Takes `steps` batches with `next`, which blocks until there is one and returns false when the
// feed has ended; sleeps for each. After each, `meet` is told how the accelerator ended the step,
// waits for the others, and returns end_of_all().
std::vector<StepTimes> run_accelerator(double step_seconds, int64_t steps,
                                       const std::function<bool()>& next,
                                       const std::function<StepEnd(StepEnd)>& meet,
                                       Clock& clock = steady_clock());

struct Utilisation {
  double share = 0;            // compute time / running time, 0 to 1
  double running_seconds = 0;  // without the first step
  double waiting_seconds = 0;  // of it, for batches
  double others_seconds = 0;   // of it, for accelerators whose batches came later
  double late_seconds = 0;     // of it, the machine woke one of them late; in no other figure
  int64_t steps = 0;           // without the first one
  // As `share`, of the time that the machine did not take: what the feed is answerable for.
  double fed_share() const { return share * running_seconds / (running_seconds - late_seconds); }
  double images_per_second(int batch) const {
    return batch * static_cast<double>(steps) / running_seconds;
  }
};

// All zero for fewer than two steps: nothing is left of them.
Utilisation utilisation(std::span<const StepTimes> steps, double step_seconds);

}  // namespace stoker
