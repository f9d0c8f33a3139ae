#include "train/train_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <thread>

namespace stoker {
namespace {

constexpr size_t kRateWindow = 100;  // steps that a StepReport's rate is the median of
constexpr int64_t kReportsPerEpoch = 20;

}  // namespace

TrainLoop::TrainLoop(TrainSetup& setup, TrainObserver& observer, const std::atomic<bool>& stop)
    : setup_(setup),
      observer_(observer),
      stop_(stop),
      log_interval_(setup.options.log_interval > 0
                        ? setup.options.log_interval
                        : std::max<int64_t>(1, setup.steps_per_epoch / kReportsPerEpoch)),
      stop_step_(std::numeric_limits<int64_t>::max()),
      metrics_(setup.options.out, setup.progress.step),
      progress_(setup.progress),
      recent_rate_(setup.options.recipe.batch, kRateWindow),
      epoch_rate_(setup.options.recipe.batch, 0),
      run_rate_(setup.options.recipe.batch, 0),
      last_checkpoint_(setup.resumed_from) {
  for (auto& traces : traces_) {
    traces.resize(setup.replicas.size());
    for (Trace& trace : traces) trace.ids.resize(static_cast<size_t>(setup.rows));
  }
  progress_.total_steps = setup.total_steps;
}

TrainResult TrainLoop::run() {
  {
    std::vector<std::jthread> threads;
    for (size_t rank = 0; rank < setup_.replicas.size(); ++rank) {
      threads.emplace_back([this, rank] {
        try {
          replica(static_cast<int>(rank));
        } catch (...) {
          fail(std::current_exception());
        }
      });
    }
  }
  if (error_) {
    try {
      std::rethrow_exception(error_);
    } catch (const TrainingFailed&) {
      throw;
    } catch (const std::exception& error) {
      throw TrainingFailed(fmt::format("training stopped after {} steps: {}; {}", progress_.step,
                                       error.what(), last_checkpoint_text()));
    }
  }
  finish_result();
  return result_;
}

void TrainLoop::fail(std::exception_ptr error) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = error;  // the others fail because this one has
  }
  setup_.collective->abort();
  setup_.loader->stop();
}

void TrainLoop::replica(int rank) {
  Collective& collective = *setup_.collective;
  const auto together = [&](auto&& work) {
    collective.barrier(rank);
    if (rank == 0) work();
    collective.barrier(rank);
  };
  const int64_t first = setup_.progress.step;
  // Saved at the end of an epoch whose evaluation was interrupted: that comes first.
  if (ends_epoch(first) && setup_.progress.epoch.weight_sum > 0) {
    together([&] { close_epoch(first); });
  } else if (first >= setup_.end_step) {
    together([&] {
      EpochReport report;
      closed_end_ = evaluate_epoch(first, report);
    });
  }
  const auto stream = setup_.replicas[rank].device->make_stream();
  StepRates rates;
  for (int64_t step = first; step < setup_.end_step && step <= stop_step_.load(); ++step) {
    const int64_t begin_ns = steady_now_ns();
    const StepTotals totals = train_step(rank, step, *stream, rates);
    if (!totals.finite) {
      if (rank == 0) throw_not_finite(step, totals);
      return;
    }
    if (rank == 0) account(step, totals, rates.learning_rate, steady_now_ns() - begin_ns);
    const bool stopping = stop_step_.load() <= step;
    if (ends_epoch(step + 1) && !stopping) {
      together([&] { close_epoch(step + 1); });
    } else if (stopping || checkpoint_due(step + 1)) {
      together([&] { save(step + 1); });
    }
  }
}

StepTotals TrainLoop::train_step(int rank, int64_t step, Stream& stream, StepRates& rates) {
  const Recipe& recipe = setup_.options.recipe;
  Engine& engine = *setup_.replicas[rank].engine;
  Trace& trace = traces_[step % 2][rank];
  const int64_t begin_ns = steady_now_ns();
  DeviceBatch batch = setup_.loader->next(rank, stream);
  if (!batch) throw std::runtime_error(fmt::format("the feed ended before step {}", step));
  batch.synchronize();
  trace.wait_ns = steady_now_ns() - begin_ns;
  std::copy_n(batch.ids(), trace.ids.size(), trace.ids.begin());
  if (setup_.receipt) setup_.receipt->add(rank, batch);

  set_rates(recipe, setup_.parameters, step, setup_.total_steps, setup_.steps_per_epoch, rates);
  engine.expect_frozen(rates.tensors);
  engine.forward_backward({batch.images(), batch.labels(), batch.weights()},
                          draw_mix(recipe.mix, recipe.input, setup_.options.seed, step));
  batch = {};  // the slot may be filled again
  if (rank == 0 && stop_.load()) {
    stop_step_.store(std::min(stop_step_.load(), step));
  }
  setup_.collective->all_reduce(rank, engine.parts(), engine.reduced());
  engine.update(rates.args);
  const StepTotals totals = engine.totals();
  const float decay = average_decay(recipe.average, step + 1, setup_.total_steps);
  if (totals.finite && decay >= 0) {
    engine.blend_average(decay, recipe.average.kind == AverageKind::lookahead);
  }
  return totals;
}

bool TrainLoop::ends_epoch(int64_t steps_done) const {
  return steps_done > 0 &&
         (steps_done % setup_.steps_per_epoch == 0 || steps_done == setup_.end_step);
}

bool TrainLoop::checkpoint_due(int64_t steps_done) const {
  const int64_t every = setup_.options.checkpoint_steps;
  return every > 0 && steps_done % every == 0;
}

void TrainLoop::close_epoch(int64_t steps_done) {
  EpochReport report = epoch_report(steps_done);
  result_.loss = report.loss;
  result_.accuracy = report.accuracy;
  if (!evaluate_epoch(steps_done, report)) {  // interrupted: the epoch stays open for a resume
    stop_step_.store(std::min(stop_step_.load(), steps_done - 1));
    save(steps_done);
    return;
  }
  closed_end_ = steps_done >= setup_.end_step;
  progress_.epoch = {};
  epoch_rate_.clear();
  epoch_times_ = {};
  save(steps_done);
  report.checkpoint = last_checkpoint_;
  metrics_.add(report);
  observer_.on_epoch(report);
}

// False if it was interrupted.
bool TrainLoop::evaluate_epoch(int64_t steps_done, EpochReport& report) {
  if (!setup_.eval) return true;
  const bool end = steps_done >= setup_.end_step;
  const double every = setup_.options.eval_every_epochs;
  const double epoch = static_cast<double>(report.epoch + 1);
  const bool due = every > 0 && std::fmod(epoch, every) < 1;
  if (!end && !due) return true;
  const auto run = [&](int views) {
    EvalOptions options = setup_.eval_options(views);
    options.stop = &stop_;
    if (end && views == 1 && !setup_.options.out.empty()) {  // one list, of the last evaluation
      options.quarantine_file = setup_.options.out + "/quarantine_eval.jsonl";
      std::filesystem::remove(options.quarantine_file);
    }
    return evaluate(*setup_.eval, setup_.engine_list(), setup_.device_list(), setup_.rows, options);
  };
  report.eval = run(1);
  if (!report.eval->complete) return false;
  if (end) {
    const int views = setup_.options.recipe.eval_views;
    result_.eval_plain = report.eval;
    result_.eval = views == 1 ? *report.eval : run(views);
    if (!result_.eval->complete) return false;
  }
  progress_.last_top1 = report.eval->top1;
  progress_.last_top5 = report.eval->top5;
  progress_.best_top1 = std::max(progress_.best_top1, report.eval->top1);
  return true;
}

void TrainLoop::save(int64_t steps_done) {
  if (setup_.runs.empty()) return;
  if (setup_.receipt) setup_.receipt->save();  // first: it is never behind the checkpoint
  progress_.step = steps_done;
  progress_.loader = setup_.loader->state();
  if (progress_.loader.next_step != steps_done) {
    throw std::logic_error(fmt::format("the feed stands at step {}, training at {}",
                                       progress_.loader.next_step, steps_done));
  }
  last_checkpoint_ = save_checkpoint(
      setup_.runs, progress_, read_state(*setup_.replicas[0].engine, setup_.options.recipe.average),
      setup_.options.keep_checkpoints);
}

}  // namespace stoker
