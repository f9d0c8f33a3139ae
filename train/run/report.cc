#include "train/run/report.h"

#include <algorithm>

#include "staging/stage_stats.h"

namespace stoker {
namespace {

constexpr size_t kRateWindow = 100;  // number of steps over which a StepReport's rate is the median

double share_of_time(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

double seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

double mean(double sum, double weight) { return weight > 0 ? sum / weight : 0; }

void add(double loss_sum, double weight_sum, double top1, RunningTotals& totals) {
  totals.loss_sum += loss_sum;
  totals.weight_sum += weight_sum;
  totals.top1 += top1;
}

}  // namespace

RunReport::RunReport(const TrainSetup& setup, TrainObserver& observer)
    : setup_(setup),
      observer_(observer),
      metrics_(setup.writes() ? setup.options.out : "", setup.progress.step),
      last_ns_(steady_now_ns()),
      recent_rate_(setup.options.recipe.batch, kRateWindow),
      epoch_rate_(setup.options.recipe.batch, 0),
      run_rate_(setup.options.recipe.batch, 0) {}

void RunReport::start_clock() { last_ns_ = steady_now_ns(); }

Traffic RunReport::per_replica(const StepTraffic& traffic) const {
  const int64_t all = traffic.steps * setup_.shape.all_replicas;
  if (all == 0) return {};
  const Traffic& sum = traffic.sum;
  return {sum.gradients_sent / all, sum.gradients_received / all, sum.weights_sent / all,
          sum.weights_received / all};
}

void RunReport::add_step(std::span<const StepMetrics> metrics, int64_t wait_ns,
                         const Traffic& traffic, std::span<RunModel> models) {
  // The time between the ends of two steps is a step's time even if several steps are queued on the
  // device.
  const int64_t now_ns = steady_now_ns(), step_ns = std::max<int64_t>(now_ns - last_ns_, 1);
  last_ns_ = now_ns;
  for (StepTimes* times : {&interval_times_, &epoch_times_, &run_times_}) {
    times->total_ns += step_ns;
    times->wait_ns += std::min(wait_ns, step_ns);
  }
  for (size_t i = 0; i < models.size(); ++i) {
    const StepMetrics& own = metrics[i];
    RunningTotals& epoch = models[i].progress.epoch;
    for (RunningTotals* sums : {&interval_, &epoch}) {
      add(own.loss_sum, own.weight_sum, own.top1, *sums);
    }
    epoch.seconds += seconds(step_ns);
  }
  for (StepTraffic* sums : {&interval_traffic_, &run_traffic_}) {
    sums->sum += traffic;
    ++sums->steps;
  }
  for (RateMeter* meter : {&recent_rate_, &epoch_rate_, &run_rate_}) meter->add(step_ns);
}

void RunReport::report_step(int64_t steps_done, double learning_rate, int64_t bad_samples) {
  const Rate rate = recent_rate_.rate();
  StepReport report;
  report.step = steps_done;
  report.total_steps = setup_.end_step;
  const int64_t fed = steps_done - setup_.more_steps;
  report.epoch = (fed - 1) / setup_.steps_per_epoch;
  report.step_in_epoch = fed - report.epoch * setup_.steps_per_epoch;
  report.steps_per_epoch = setup_.steps_per_epoch;
  report.epochs = setup_.options.recipe.epochs;
  report.loss = mean(interval_.loss_sum, interval_.weight_sum);
  report.accuracy = mean(interval_.top1, interval_.weight_sum);
  report.learning_rate = learning_rate;
  report.images_per_second = rate.images_per_second;
  report.jitter = rate.jitter;
  report.feed_wait_share = share_of_time(interval_times_.wait_ns, interval_times_.total_ns);
  if (rate.images_per_second > 0) {
    report.eta_seconds = static_cast<double>((setup_.end_step - steps_done)) *
                         setup_.options.recipe.batch / rate.images_per_second;
  }
  report.bad_samples = bad_samples;
  report.traffic = per_replica(interval_traffic_);
  metrics_.add(report);
  observer_.on_step(report);
  interval_ = {};
  interval_traffic_ = {};
  interval_times_ = {};
  start_clock();
}

void RunReport::report_warnings(int64_t steps_done, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    metrics_.add_warning(steps_done, warning);
    observer_.on_message("warning: " + warning);
  }
}

EpochReport RunReport::epoch_report(int64_t steps_done, std::span<const RunModel> models) const {
  EpochReport report;
  RunningTotals totals;
  for (const RunModel& model : models) {
    const RunningTotals& epoch = model.progress.epoch;
    add(epoch.loss_sum, epoch.weight_sum, epoch.top1, totals);
  }
  report.replicas.resize(static_cast<size_t>(setup_.shape.replica_models));
  for (size_t i = 0; i < report.replicas.size(); ++i) {
    const RunningTotals& epoch = models[i].progress.epoch;
    report.replicas[i].loss = mean(epoch.loss_sum, epoch.weight_sum);
    report.replicas[i].accuracy = mean(epoch.top1, epoch.weight_sum);
  }
  const Rate rate = epoch_rate_.rate();
  const int64_t fed = steps_done - setup_.more_steps;
  report.epoch = (fed - 1) / setup_.steps_per_epoch;
  report.step = steps_done;
  report.epochs_done = static_cast<double>(fed) / static_cast<double>(setup_.steps_per_epoch);
  report.loss = mean(totals.loss_sum, totals.weight_sum);
  report.accuracy = mean(totals.top1, totals.weight_sum);
  report.images_per_second = rate.images_per_second;
  report.jitter = rate.jitter;
  report.feed_wait_share = share_of_time(epoch_times_.wait_ns, epoch_times_.total_ns);
  report.seconds = models.front().progress.epoch.seconds;
  return report;
}

void RunReport::report_epoch(const EpochReport& report) {
  metrics_.add(report);
  observer_.on_epoch(report);
}

void RunReport::begin_epoch() {
  epoch_rate_.clear();
  epoch_times_ = {};
}

void RunReport::add_rates(TrainResult& result) const {
  const Rate rate = run_rate_.rate();
  result.images_per_second = rate.images_per_second;
  result.jitter = rate.jitter;
  result.feed_wait_share = share_of_time(run_times_.wait_ns, run_times_.total_ns);
  result.train_seconds = seconds(run_times_.total_ns);
  result.traffic = per_replica(run_traffic_);
}

}  // namespace stoker
