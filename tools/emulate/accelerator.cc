#include "tools/emulate/accelerator.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>
#include <thread>

namespace stoker {
namespace {

constexpr int64_t kStepsLeftOut = 1;
constexpr double kHandOver = 0.01;  // of a step: a batch that comes this soon was ready

class SteadyClock final : public Clock {
 public:
  double seconds() override {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  void sleep(double length) override {
    std::this_thread::sleep_for(std::chrono::duration<double>(length));
  }
};

}  // namespace

std::span<const AcceleratorSpec> known_accelerators() {
  static const std::array specs = {
      AcceleratorSpec{"a100", 400, 0.435, "MLPerf Storage, ResNet-50"},
      AcceleratorSpec{"h100", 400, 0.224, "MLPerf Storage, ResNet-50"},
      AcceleratorSpec{"h100-training", 400, 400 / 7006.0,
                      "MLPerf Training v3.0, ResNet-50, 8 x H100: 56,050 images/s"},
      AcceleratorSpec{"h200-training", 400, 400 / 7952.0,
                      "MLPerf Training v4.0, ResNet-50, 8 x H200: 63,615 images/s"},
      AcceleratorSpec{"b200-retinanet", 24, 0.04755, "MLPerf Storage v3, RetinaNet", 0.85},
  };
  return specs;
}

const AcceleratorSpec& find_accelerator(const std::string& name) {
  std::string known;
  for (const AcceleratorSpec& spec : known_accelerators()) {
    if (spec.name == name) return spec;
    known += (known.empty() ? "" : ", ") + spec.name;
  }
  throw std::invalid_argument("there is no accelerator '" + name + "', there are " + known);
}

AcceleratorSpec accelerator_of_rate(double images_per_second, int batch) {
  if (!(images_per_second > 0) || batch < 1) {
    throw std::invalid_argument("an accelerator of " + std::to_string(images_per_second) +
                                " images/s in batches of " + std::to_string(batch) +
                                ": both must be more than 0");
  }
  return {"custom", batch, batch / images_per_second, "as asked for"};
}

Clock& steady_clock() {
  static SteadyClock clock;
  return clock;
}

StepEnd end_of_all(std::span<const StepEnd> all) {
  double done = all.front().done, seconds = all.front().seconds();
  for (const StepEnd& each : all) {
    done = std::max(done, each.done);
    seconds = std::max(seconds, each.seconds());
  }
  return {done, seconds - done};
}

std::vector<StepTimes> run_accelerator(double step_seconds, int64_t steps,
                                       const std::function<bool()>& next,
                                       const std::function<StepEnd(StepEnd)>& meet, Clock& clock) {
  std::vector<StepTimes> run;
  run.reserve(steps);
  double now = clock.seconds();  // the accelerator's own time: never ahead of the clock
  for (int64_t i = 0; i < steps; ++i) {
    StepTimes times{.asked = now, .came = now};
    const double asked = clock.seconds();
    if (!next()) break;
    const double came = clock.seconds();
    if (came - asked > kHandOver * step_seconds) times.came = came;
    const double late = std::max(0.0, came - times.came - step_seconds);
    times.done = times.came + step_seconds;
    clock.sleep(std::max(0.0, times.done + late - clock.seconds()));
    times.all = meet({times.done, late});
    now = times.all.seconds();
    run.push_back(times);
  }
  return run;
}

Utilisation utilisation(std::span<const StepTimes> steps, double step_seconds) {
  Utilisation result;
  if (std::ssize(steps) <= kStepsLeftOut) return result;
  result.steps = std::ssize(steps) - kStepsLeftOut;
  result.running_seconds = steps.back().all.seconds() - steps[kStepsLeftOut - 1].all.seconds();
  for (const StepTimes& step : steps.subspan(kStepsLeftOut)) {
    result.waiting_seconds += step.came - step.asked;
    result.others_seconds += step.all.done - step.done;
    result.late_seconds += step.all.late;
  }
  result.share = step_seconds * static_cast<double>(result.steps) / result.running_seconds;
  return result;
}

}  // namespace stoker
