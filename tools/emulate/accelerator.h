// Emulated accelerators: a step is a sleep of the length that a real one was measured to take, so
// that a machine without accelerators can measure how many it would feed. And accelerator
// utilisation (AU) by the rules of MLPerf Storage, as read from github.com/mlcommons/storage at
// caa90c9 (Submission_guidelines.md, section 4) and from DLIO at e1919d7, which implements them:
//   AU = compute time / running time, mean of all accelerators, without the whole first step.
//   After each step all wait for each other, as for an all-reduce; that is running time.
//   A result is the mean of 5 runs. ResNet-50 passes at 90 %, RetinaNet at 85 %.
// Compute time is a step's nominal length, not the sleep, which is longer on a busy machine.
//
// Unlike there, an accelerator keeps its own time: a thread that the machine wakes late is not the
// feed's fault, so the next step begins when this one should have ended, if its batch was there.
// A delay that a whole step cannot make up for is late_seconds. So running time = compute time +
// waiting for batches + waiting for others + woken late. Pure but for the clock. Threads: one each.
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
  int batch = 400;                 // rows of a step
  double step_seconds = 0;         // computing
  std::string source;              // where the figure comes from
  double pass = kPassUtilisation;  // the utilisation from which on it is fed
  double images_per_second() const { return batch / step_seconds; }
};

// Returns the known specs: a100, h100 and b200-retinanet as MLPerf Storage emulates them;
// h100-training and h200-training as fast as one of eight GPUs in MLPerf Training.
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
