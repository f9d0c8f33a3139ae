// Emulated accelerators: a step is a sleep of the length that a real one was measured to take, so
// that a machine without accelerators can measure how many it would feed. And accelerator
// utilisation by the rules of MLPerf Storage.
//
// The rules, as read from github.com/mlcommons/storage at caa90c9 (Submission_guidelines.md,
// section 4) and github.com/argonne-lcf/dlio_benchmark at e1919d7 (statscounter.py,
// compute_metrics_train; main.py, _train), which implements them:
//   AU = compute time / running time, of every accelerator; the result is their mean.
//   The first step, loading and computing, is left out of both.
//   After each step all accelerators wait for each other, as for an all-reduce; the wait counts as
//   running time.
//   A result is the mean of 5 runs. ResNet-50 passes at 90 %.
// Compute time is the step's nominal length, as in the guidelines' formula, and not the measured
// sleep, which is longer on a busy machine.
// Two differences:
//   An accelerator keeps its own time. A thread that the machine wakes late is not the feed's
//   fault, and an accelerator that is late because of it would take less than a real one. So the
//   next step begins when this one should have ended, if its batch was ready. What a whole step
//   cannot make up for is reported: late_seconds. The whole first step is left out, with the wait
//   for the others after it: on one machine the first batches come one after another. In the
//   guidelines' 500 steps this would not show.
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
  double step_seconds = 0;  // computing
  std::string source;       // where the figure comes from
  double images_per_second() const { return batch / step_seconds; }
};

// Returns the known specs: a100 and h100 as MLPerf Storage emulates them; h100-training and
// h200-training as fast as one of eight GPUs in MLPerf Training.
std::span<const AcceleratorSpec> known_accelerators();
// Throws std::invalid_argument that lists the known names.
const AcceleratorSpec& find_accelerator(const std::string& name);
// Returns an accelerator that takes this many images per second. Throws std::invalid_argument
// unless both are > 0.
AcceleratorSpec accelerator_of_rate(double images_per_second, int batch);

// The time of an accelerator; tests have their own. Threads: any.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual double seconds() = 0;  // since a fixed moment
  virtual void sleep(double seconds) = 0;
};

Clock& steady_clock();

// The end of a step in an accelerator's own time. `late`: the machine woke it so much later than a
// whole step could make up for; without that, computing would have ended at `done`.
struct StepEnd {
  double done = 0;
  double late = 0;
  double seconds() const { return done + late; }
};
// Returns the end of the step for all accelerators, which wait for each other.
StepEnd end_of_all(std::span<const StepEnd> all);

struct StepTimes {   // seconds of the accelerator's own time
  double asked = 0;  // the batch was asked for
  double came = 0;   // the batch came
  double done = 0;   // computing ended, as in StepEnd
  StepEnd all{};     // end_of_all(), where the next step begins
};

// Takes `steps` batches with `next`, which blocks until there is one and returns false when the
// feed has ended, and sleeps for each. After each step `meet` gets its end on this accelerator,
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
  double late_seconds = 0;  // of it, because the machine woke one of them late; in no other figure
  int64_t steps = 0;        // without the first one
  // Like `share`, but of the time without late_seconds: what the feed is responsible for.
  double fed_share() const { return share * running_seconds / (running_seconds - late_seconds); }
  double images_per_second(int batch) const {
    return batch * static_cast<double>(steps) / running_seconds;
  }
};

// Returns zeros for fewer than two steps, because the first one does not count.
Utilisation utilisation(std::span<const StepTimes> steps, double step_seconds);

}  // namespace stoker
