#include "tools/profile/feed_whatif.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

namespace stoker {
namespace {

// A simulation makes this many rows.
constexpr int64_t kModelledRows = 6000;
// A stage that costs nothing takes this many seconds.
constexpr double kNothing = 1e-9;
constexpr uint64_t kSeed = 1;

int modelled_steps(const FeedModel& model) {
  return static_cast<int>(std::clamp<int64_t>(kModelledRows / std::max(1, model.rows), 40, 400));
}

std::vector<double> times(double factor, std::vector<double> values) {
  for (double& value : values) value *= factor;
  return values;
}

double mean(const std::vector<double>& values) {
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

std::vector<double> drawn_again(const std::vector<double>& values, std::mt19937_64& random) {
  std::vector<double> result(values.size());
  for (double& value : result) value = values[random() % values.size()];
  return result;
}

}  // namespace

FeedWhatIf::FeedWhatIf(const FeedShape& shape, const RunMeasurements& measured, double bound,
                       const OtherWorkers& other)
    : shape_(shape), measured_(measured), bound_(bound), other_(other) {
  const bool copies = shape.slots > 0 || !shape.zero_copy;
  possible_ = shape.workers > 0 && !measured.fill_cpu_s.empty() && !measured.hold_s.empty() &&
              (!copies || !measured.copy_s.empty()) && measured.samples_per_second > 0 &&
              (shape.io_threads == 0 || measured.cached_share == 1 || !measured.read_s.empty());
  if (possible_) base_ = modelled({});
}

double FeedWhatIf::worker_cores() const {
  return measured_.worker_cores >= 0 ? measured_.worker_cores
                                     : measured_.busy_workers * measured_.worker_cpu_speed;
}

// Returns how many cores this process's other threads want while `workers` workers never wait. They
// work for each row, so this grows with the rate, but not beyond that of the steps alone.
double FeedWhatIf::own_rivals(double workers) const {
  const double rest = std::max(0.0, measured_.own_cores - worker_cores());
  if (rest == 0) return 0;
  const double most = bound_ > 0 ? std::max(1.0, bound_ / measured_.samples_per_second) : 1e9;
  return rest * std::clamp(workers / std::max(worker_cores(), 0.01), 1.0, most);
}

// Linux shares the cores evenly: with w workers of ours and n other threads that are ready to run,
// each gets cores / (w + n). n follows from the measured speed or, if no thread had to wait, from
// the number of busy threads of other programs. Of w, those count that had work.
double FeedWhatIf::shared_speed(double workers, double cores) const {
  const double measured = measured_.worker_cpu_speed;
  double rivals = own_rivals(workers) + std::max(0.0, measured_.other_cores);
  if (measured < 0.95) rivals = std::max(rivals, (shape_.cores - worker_cores()) / measured);
  return std::clamp(cores / (workers + rivals), 0.01, 1.0);
}

// Extrapolates the speed to a third number of workers from two that were measured on the same
// cores. If cores are shared evenly, a worker takes 1 / speed = (w + n) / cores seconds for a CPU
// second. That is a line in w with the slope 1 / cores; it is steeper if a group of threads gets
// less than the whole machine.
double FeedWhatIf::extrapolated_speed(double workers) const {
  const double own = shape_.workers, slowness = 1 / measured_.worker_cpu_speed;
  const double other_slowness = 1 / std::max(0.01, other_.cpu_speed);
  const double slope = std::max((other_slowness - slowness) / (other_.workers - own), 0.0);
  return std::clamp(1 / std::max(1.0, slowness + slope * (workers - own)), 0.01, 1.0);
}

double FeedWhatIf::cpu_speed(const FeedChange& change) const {
  const double measured = measured_.worker_cpu_speed;
  const double workers = shape_.workers + change.workers, cores = shape_.cores + change.cores;
  if (change.undisturbed) {
    return std::clamp(cores / (workers + own_rivals(workers)), 0.01, 1.0);
  }
  if (change.workers == 0 && change.cores == 0) return measured;
  const double shared = shared_speed(workers, cores);
  // More threads on the same cores are not faster than before, and fewer are not slower.
  if (change.workers <= 0 || change.cores > 0) return std::max(shared, measured);
  const double speed = std::min(shared, measured);
  return other_.workers > 0 ? std::min(speed, extrapolated_speed(workers)) : speed;
}

FeedModel FeedWhatIf::changed(const FeedChange& change) const {
  FeedModel model;
  const int rows = change.rows > 0 ? change.rows : shape_.rows;
  model.rows = rows * (change.devices > 0 ? change.devices : shape_.devices);
  model.workers = std::max(1, shape_.workers + change.workers);
  model.io_threads = std::max(0, shape_.io_threads + change.io_threads);
  model.ring_depth = std::max(1, shape_.ring_depth + change.ring_depth);
  model.slots = std::clamp(shape_.slots + change.slots, 0, 3);
  model.zero_copy = shape_.zero_copy;
  model.cached_share = measured_.cached_share;
  model.read_s = measured_.read_s;
  model.fill_cpu_s = measured_.fill_cpu_s;
  model.copy_s = measured_.copy_s;
  model.hold_s = measured_.hold_s;
  model.rest_s = measured_.rest_s;
  model.cpu_speed = cpu_speed(change);
  // A worker's speed is measured while it has a row. How long it waits for a core before it takes a
  // row is not measured, but all workers together cannot get more than there is.
  const double cores = shape_.cores + change.cores;
  if (model.workers > cores) model.cores = cores;
  if (change.storage_free) model.read_s = {std::max(kNothing, measured_.read_cpu_s)};
  if (change.fill_free) model.fill_cpu_s = {kNothing};
  if (change.copy_free) model.copy_s = {kNothing};
  if ((change.undisturbed || change.cores > 0) && bound_ > 0) {
    // The steps waited for cores, too; those that replayed a batch less so.
    const double step_s = mean(measured_.hold_s) + mean(measured_.rest_s);
    const double quiet = std::min(1.0, model.rows / bound_ / step_s);
    model.hold_s = times(quiet, model.hold_s);
    model.rest_s = times(quiet, model.rest_s);
  }
  if (change.step_free) model.hold_s = model.rest_s = {kNothing};
  if (change.step_s > 0) {
    const double left_out = base_.samples_per_second / measured_.samples_per_second;
    model.fill_cpu_s = times(left_out, model.fill_cpu_s);
    model.copy_s = times(static_cast<double>(rows) / shape_.rows, model.copy_s);
    model.hold_s = {change.step_s};
    model.rest_s = {kNothing};
  }
  return model;
}

ModelledRun FeedWhatIf::modelled(const FeedChange& change) const {
  const FeedModel model = changed(change);
  return run_model(model, modelled_steps(model), kSeed);
}

// Returns the rate that the CPU time of this process allows, if a row takes as much of it as
// before.
double FeedWhatIf::ceiling(const FeedChange& change) const {
  const bool saves_time = change.storage_free || change.fill_free || change.copy_free ||
                          change.step_free || change.undisturbed || change.step_s > 0;
  if (saves_time || measured_.own_cores <= 0) return std::numeric_limits<double>::infinity();
  const double cores = std::max(shape_.cores + change.cores, measured_.own_cores);
  return measured_.samples_per_second * cores / measured_.own_cores;
}

FeedWhatIf::Prediction FeedWhatIf::predict(const FeedChange& change) const {
  const ModelledRun run = modelled(change);
  Prediction result;
  result.unbounded = run.samples_per_second;
  if (change == FeedChange{.workers = other_.workers - shape_.workers} && other_.workers > 0) {
    result.unbounded = other_.samples_per_second;
  } else if (change.step_s <= 0 && !change.undisturbed) {
    result.unbounded *= measured_.samples_per_second / base_.samples_per_second;
    result.unbounded = std::min(result.unbounded, ceiling(change));
  }
  const bool bounded = bound_ > 0 && !change.step_free && change.step_s <= 0;
  result.samples_per_second = bounded ? std::min(result.unbounded, bound_) : result.unbounded;
  result.waiting_share = (run.input_wait_s + run.copy_wait_s) / run.step_s;
  return result;
}

double FeedWhatIf::gain(const FeedChange& change) const {
  return std::min(modelled(change).samples_per_second / base_.samples_per_second,
                  ceiling(change) / measured_.samples_per_second) -
         1;
}

double FeedWhatIf::model_error() const {
  return base_.samples_per_second / measured_.samples_per_second - 1;
}

FeedWhatIf FeedWhatIf::resampled(uint64_t seed) const {
  std::mt19937_64 random(seed);
  RunMeasurements other = measured_;
  for (auto* values :
       {&other.read_s, &other.fill_cpu_s, &other.copy_s, &other.hold_s, &other.rest_s}) {
    *values = drawn_again(*values, random);
  }
  return FeedWhatIf(shape_, other, bound_, other_);
}

}  // namespace stoker
