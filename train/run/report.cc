// What a run says of itself: reports, metrics, the result, and which rows a broken step had.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "pipeline/durable_file.h"
#include "train/run/loop.h"

namespace stoker {
namespace {

constexpr size_t kNamedRows = 8;  // in the message of a failed step; all are in failed_step.txt

double share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

double seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

double mean(double sum, double weight) { return weight > 0 ? sum / weight : 0; }

}  // namespace

void TrainLoop::account(int64_t step, const StepTotals& totals) {
  const Trace& trace = trace_of(step);
  // From when the step before was done to when this one is: what it took, also where many are under
  // way on the device.
  const int64_t now_ns = steady_now_ns(), step_ns = std::max<int64_t>(now_ns - account_ns_, 1);
  account_ns_ = now_ns;
  int64_t wait_ns = trace.own.wait_ns;
  for (const StepNotes& notes : trace.all) wait_ns = std::max(wait_ns, notes.wait_ns);
  for (StepTimes* times : {&interval_times_, &epoch_times_, &run_times_}) {
    times->total_ns += step_ns;
    times->wait_ns += std::min(wait_ns, step_ns);
  }
  for (RunningTotals* sums : {&interval_, &progress_.epoch}) {
    sums->loss_sum += totals.loss_sum;
    sums->weight_sum += totals.weight_sum;
    sums->top1 += totals.top1;
    sums->seconds += seconds(step_ns);
  }
  for (RateMeter* meter : {&recent_rate_, &epoch_rate_, &run_rate_}) meter->add(step_ns);
  progress_.step = step + 1;
  if (!setup_.processes.is_rank0()) return;
  check_bad_samples(trace);
  if (progress_.step % log_interval_ == 0 || ends_epoch(progress_.step)) {
    report_step(progress_.step, trace.learning_rate);
    account_ns_ = steady_now_ns();
  }
}

// Each process holds its own share against the budget; together they have no more.
void TrainLoop::check_bad_samples(const Trace& trace) {
  bad_samples_ = 0;
  for (const StepNotes& notes : trace.all) bad_samples_ += notes.bad_samples;
  const double limit = setup_.options.feed.max_bad;
  const double budget = limit >= 1 ? limit : limit * static_cast<double>(setup_.train.size());
  const int64_t bad = bad_samples_ - epoch_bad_samples_;
  if (setup_.processes.size() == 1 || static_cast<double>(bad) <= budget) return;
  throw TrainingFailed(
      fmt::format("bad samples in an epoch: {} by step {} in {} processes, the budget is {:.0f} "
                  "(max_bad {:g}); "
                  "they are listed in {}{}",
                  bad, progress_.step - 1, setup_.processes.size(), budget, limit,
                  quarantine_file(setup_.options.out, "quarantine*", 0), last_checkpoint_text()));
}

void TrainLoop::report_step(int64_t steps_done, double learning_rate) {
  const Rate rate = recent_rate_.rate();
  StepReport report;
  report.step = steps_done;
  report.total_steps = setup_.end_step;
  report.epoch = (steps_done - 1) / setup_.steps_per_epoch;
  report.step_in_epoch = steps_done - report.epoch * setup_.steps_per_epoch;
  report.steps_per_epoch = setup_.steps_per_epoch;
  report.epochs = setup_.options.recipe.epochs;
  report.loss = mean(interval_.loss_sum, interval_.weight_sum);
  report.accuracy = mean(interval_.top1, interval_.weight_sum);
  report.learning_rate = learning_rate;
  report.images_per_second = rate.images_per_second;
  report.jitter = rate.jitter;
  report.feed_wait_share = share(interval_times_.wait_ns, interval_times_.total_ns);
  if (rate.images_per_second > 0) {
    report.eta_seconds = static_cast<double>((setup_.end_step - steps_done)) *
                         setup_.options.recipe.batch / rate.images_per_second;
  }
  report.bad_samples = bad_samples_;
  metrics_.add(report);
  observer_.on_step(report);
  interval_ = {};
  interval_times_ = {};
}

// Each process knows of its own; as of all else, the first alone reports.
void TrainLoop::report_warnings(int64_t steps_done) {
  std::vector<std::string> warnings;
  {
    const std::lock_guard lock(mutex_);
    warnings.swap(warnings_);
  }
  if (!setup_.processes.is_rank0()) return;
  for (const std::string& warning : warnings) {
    metrics_.add_warning(steps_done, warning);
    observer_.on_message("warning: " + warning);
  }
}

EpochReport TrainLoop::epoch_report(int64_t steps_done) const {
  const Rate rate = epoch_rate_.rate();
  EpochReport report;
  report.epoch = (steps_done - 1) / setup_.steps_per_epoch;
  report.step = steps_done;
  report.epochs_done =
      static_cast<double>(steps_done) / static_cast<double>(setup_.steps_per_epoch);
  report.loss = mean(progress_.epoch.loss_sum, progress_.epoch.weight_sum);
  report.accuracy = mean(progress_.epoch.top1, progress_.epoch.weight_sum);
  report.images_per_second = rate.images_per_second;
  report.jitter = rate.jitter;
  report.feed_wait_share = share(epoch_times_.wait_ns, epoch_times_.total_ns);
  report.seconds = progress_.epoch.seconds;
  return report;
}

std::string TrainLoop::last_checkpoint_text() const {
  if (!setup_.processes.is_rank0()) return "";
  return last_checkpoint_.empty() ? "; no checkpoint was written"
                                  : "; the last good checkpoint is " + last_checkpoint_;
}

void TrainLoop::throw_not_finite(int64_t step, const StepTotals& totals) {
  std::vector<std::string> rows;
  for (const StepNotes& notes : trace_of(step).all) {
    for (const SampleId id : notes.ids) {
      rows.push_back(fmt::format("{} {}", id, setup_.train.name(id)));
    }
  }
  std::string where;
  if (setup_.writes()) {
    const std::string path = setup_.options.out + "/failed_step.txt";
    replace_file(path, fmt::format("step {}\n{}\n", step, fmt::join(rows, "\n")));
    where = ", all of them in " + path;
  }
  const size_t count = rows.size();
  rows.resize(std::min(count, kNamedRows));
  const int64_t late = queued_ - 1 - step;
  throw TrainingFailed(fmt::format(
      "step {}{}: the loss or a gradient is not finite (loss sum {} over weight {}); the "
      "weights were not changed by it; {}{}{}",
      step, late > 0 ? fmt::format(", noticed {} steps later", late) : "", totals.loss_sum,
      totals.weight_sum,
      count > 0 ? fmt::format("its {} rows begin with {}", count, fmt::join(rows, ", "))
                : "process 0 names its rows",
      where, last_checkpoint_text()));
}

void TrainLoop::finish_result() {
  const Rate rate = run_rate_.rate();
  result_.step = progress_.step;
  result_.total_steps = setup_.total_steps;
  result_.epochs_done =
      static_cast<double>(progress_.step) / static_cast<double>(setup_.steps_per_epoch);
  result_.interrupted = !closed_end_;
  if (result_.interrupted) {
    result_.eval.reset();
    result_.eval_plain.reset();
  }
  if (progress_.epoch.weight_sum > 0) {
    result_.loss = mean(progress_.epoch.loss_sum, progress_.epoch.weight_sum);
    result_.accuracy = mean(progress_.epoch.top1, progress_.epoch.weight_sum);
  }
  result_.best_top1 = progress_.best_top1;
  result_.images_per_second = rate.images_per_second;
  result_.jitter = rate.jitter;
  result_.feed_wait_share = share(run_times_.wait_ns, run_times_.total_ns);
  result_.train_seconds = seconds(run_times_.total_ns);
  result_.bad_samples = bad_samples_;
  result_.checkpoint = last_checkpoint_;
  if (setup_.receipt) result_.receipt = setup_.options.out + "/receipt.json";
}

}  // namespace stoker
