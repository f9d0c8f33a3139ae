#include "train/run/loop.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <thread>

#include "pipeline/files/durable_file.h"
#include "staging/error_text.h"
#include "staging/threads.h"
#include "train/run/evaluation.h"
#include "train/run/metrics.h"
#include "train/run/options.h"

namespace stoker {
namespace {

constexpr size_t kNamedRows = 8;  // in the message of a failed step; all are in failed_step.txt
constexpr int64_t kReportsPerEpoch = 20;

bool has_samples(const std::vector<RunModel>& models) {
  return std::ranges::any_of(
      models, [](const RunModel& model) { return model.progress.epoch.weight_sum > 0; });
}

}  // namespace

TrainLoop::TrainLoop(TrainSetup& setup, TrainObserver& observer, const std::atomic<bool>& stop)
    : setup_(setup),
      stop_(stop),
      log_interval_(setup.options.log_interval > 0
                        ? setup.options.log_interval
                        : std::max<int64_t>(1, setup.steps_per_epoch / kReportsPerEpoch)),
      first_step_(setup.progress.step),
      gate_(setup.options.replicas),
      parameters_(parameter_table(setup.net)),
      metrics_left_(static_cast<size_t>(setup.shape.local_models), setup.progress.step),
      stop_step_(std::numeric_limits<int64_t>::max()),
      report_(setup, observer),
      step_log_(setup.writes() ? setup.options.out : "", setup.progress.step,
                setup.options.row_losses ? setup.options.recipe.batch : 0),
      progress_(setup.progress),
      models_(setup.models),
      queued_(setup.progress.step) {
  const auto rows = static_cast<size_t>(setup.shape.rows) * static_cast<size_t>(setup.shape.parts) *
                    setup.replicas.size();
  for (Trace& trace : traces_) {
    trace.own.ids.resize(rows);
    trace.own.digests.resize(rows);
    if (setup.options.row_losses) {
      trace.own.losses.resize(rows);
      trace.results.resize(rows);
    }
    trace.waits.resize(setup.replicas.size());
    trace.metrics.resize(metrics_left_.size());
  }
  progress_.total_steps = setup.total_feed_steps + setup.more_steps;
}

TrainResult TrainLoop::run() {
  try {
    run_threads("training", static_cast<int64_t>(setup_.replicas.size()), [this](int64_t rank) {
      try {
        replica(static_cast<int>(rank));
      } catch (...) {
        fail();
      }
    });
  } catch (...) {  // a thread could not be made, and none has begun
    fail();
  }
  try {
    error_.rethrow();
  } catch (const TrainingFailed&) {
    throw;
  } catch (const std::exception& error) {
    throw TrainingFailed(fmt::format("training stopped after {} steps: {}{}", progress_.step,
                                     error.what(), last_checkpoint_text()));
  }
  setup_.processes.finish_collecting();
  report_warnings(queued_);  // those of the other replicas' last step
  finish_result();
  return result_;
}

void TrainLoop::fail() noexcept {
  // This comes first, because what follows makes the other replicas fail too.
  error_.keep_current();
  if (ProcessGroup* group = setup_.processes.group()) group->abort(current_error_text());
  gate_.abort("collective: aborted, because another replica failed");
  setup_.replicas.abort(current_error_text());
  setup_.loader->stop();
}

void TrainLoop::replica(int rank) {
  if (tracer()) tracer()->name_thread(fmt::format("replica {}", rank));
  const auto together = [&](int64_t steps_done, auto&& work) {
    leave_metrics(rank, steps_done);
    gate_.wait();
    if (rank == 0) work();
    gate_.wait();
  };
  Engine& engine = *setup_.replicas[rank].engine;
  std::unique_ptr<Stream> own_stream;
  if (!engine.stream()) own_stream = setup_.replicas[rank].device->make_stream();
  BatchFeed feed(*setup_.loader, rank, own_stream ? *own_stream : *engine.stream(), setup_.options,
                 measure_hooks(setup_.options),
                 setup_.resident.empty() ? nullptr : setup_.resident[rank].get());
  if (first_step_ < setup_.end_step) feed.prepare();
  together(first_step_, [&] { start(first_step_); });
  StepTrace trace(tracer(), engine, rank);
  StepRates rates;
  bool warned = false;  // once is enough
  for (int64_t step = first_step_; step < setup_.end_step && step <= stop_step_.load(); ++step) {
    train_step(rank, step, feed, rates, trace);
    if (!warned) warned = note_warning(rank);
    if (rank == 0) end_step(step);
    const bool stopping = stop_step_.load() <= step;
    if (ends_epoch(step + 1) && !stopping) {
      together(step + 1, [&] { close_epoch(step + 1); });
    } else if (stopping || checkpoint_due(step + 1)) {
      together(step + 1, [&] { save(step + 1); });
    }
  }
}

// Does what an earlier run left undone, before the first step.
void TrainLoop::start(int64_t first) {
  // If the checkpoint is from the end of an epoch whose evaluation was interrupted, evaluates now.
  if (ends_epoch(first) && has_samples(setup_.models)) {
    close_epoch(first);
  } else if (first >= setup_.end_step) {
    EpochReport report;
    closed_end_ = evaluate_epoch(first, report);
  }
  report_.start_clock();
}

void TrainLoop::train_step(int rank, int64_t step, BatchFeed& feed, StepRates& rates,
                           StepTrace& trace) {
  const Recipe& recipe = setup_.options.recipe;
  Engine& engine = *setup_.replicas[rank].engine;
  const SpanTimer whole(tracer(), SpanKind::step, step, rank, SpanTimer::Cpu::measure);
  rates.more_updates = setup_.more_steps;
  rates.update_batch = setup_.shape.update_batch;
  set_rates(recipe, parameters_, feed_step(step), setup_.total_feed_steps, setup_.steps_per_epoch,
            rates);
  engine.expect_frozen(rates.tensors);
  // The gradients of this step may take their place.
  leave_metrics(rank, step - engine.metrics_lag());
  for (int part = 0; part < setup_.shape.parts; ++part) train_part(rank, part, step, feed, trace);
  if (rank == 0) {
    trace_of(step).learning_rate = rates.learning_rate;
    const bool stop = setup_.processes.can_ask() ? setup_.processes.all_reduce_any(stop_.load())
                                                 : setup_.processes.heard_stop();
    if (stop) stop_step_.store(std::min(stop_step_.load(), step));
  }
  const float decay = average_decay(recipe.average, feed_step(step) + 1, setup_.total_feed_steps);
  const bool lookahead = recipe.average.kind == AverageKind::lookahead;
  {
    const SpanTimer timer(tracer(), SpanKind::reduce, step, rank);
    gate_.wait();
    if (setup_.replicas.in_buckets()) {
      setup_.replicas.collective().ranges()->finish(rank);
    } else {
      setup_.replicas.collective().all_reduce(rank, engine.gradient_buffers(),
                                              setup_.replicas.updated_by(rank).reduced_gradients());
    }
  }
  const SpanTimer timer(tracer(), SpanKind::update, step, rank);
  if (ParameterServer* server = setup_.replicas.server()) {
    server->step(rank, engine, rates.args, decay, lookahead);
    return;
  }
  engine.update(rates.args);
  // If the metrics come late, a skipped update may be averaged once more. That does no harm: the
  // run ends before anything is saved.
  if (decay >= 0 && (engine.metrics_lag() > 0 || engine.step_metrics().finite)) {
    engine.blend_average(decay, lookahead);
  }
}

// Leaves the metrics of a replica's model, if it has one, of all steps before `steps_done`. So many
// updates were given, and possibly more.
void TrainLoop::leave_metrics(int rank, int64_t steps_done) {
  const auto model = static_cast<size_t>(rank);
  if (model >= metrics_left_.size()) return;
  for (int64_t& step = metrics_left_[model]; step < steps_done; ++step) {
    trace_of(step).metrics[model] = setup_.replicas.metrics_of(model, step - first_step_);
  }
}

void TrainLoop::train_part(int rank, int part, int64_t step, BatchFeed& feed, StepTrace& trace) {
  Engine& engine = *setup_.replicas[rank].engine;
  const int64_t begin_ns = steady_now_ns();
  const FedBatch* batch = feed.next(step, engine.stream() == nullptr);
  if (!batch) throw std::runtime_error(fmt::format("the feed ended before step {}", step));
  note_batch(rank, part, step, *batch, steady_now_ns() - begin_ns);
  BatchRows rows = batch->rows;
  rows.first = part == 0;
  rows.last = part == setup_.shape.parts - 1;
  const int64_t replica = setup_.processes.rank() * setup_.options.replicas + rank;
  const int64_t place = int64_t{part} * setup_.shape.all_replicas + replica;
  rows.position = feed_step(step) * setup_.options.recipe.batch + place * setup_.shape.rows;
  const size_t first = first_row(rank, part);
  if (setup_.options.row_losses) rows.results = trace_of(step).results.data() + first;
  trace.pass(step, [&] { engine.forward_backward(rows); });
  if (setup_.options.row_losses) note_losses(first, step, *batch);
  feed.done();
}

// Samples are noted part by part, and replica by replica in each.
size_t TrainLoop::first_row(int rank, int part) const {
  return static_cast<size_t>(setup_.shape.rows) *
         (static_cast<size_t>(part) * setup_.replicas.size() + static_cast<size_t>(rank));
}

// REQUIRES: an engine that gives rows' results, whose batches are in host memory.
void TrainLoop::note_losses(size_t first, int64_t step, const FedBatch& batch) {
  Trace& trace = trace_of(step);
  for (size_t row = 0; row < static_cast<size_t>(setup_.shape.rows); ++row) {
    trace.own.losses[first + row] =
        batch.rows.weights[row] == 0 ? kNoRowLoss : to_row_loss(trace.results[first + row]);
  }
}

void TrainLoop::note_batch(int rank, int part, int64_t step, const FedBatch& batch,
                           int64_t wait_ns) {
  Trace& trace = trace_of(step);
  const auto rows = static_cast<size_t>(setup_.shape.rows);
  const size_t first = first_row(rank, part);
  trace.waits[rank] = wait_ns + (part > 0 ? trace.waits[rank] : 0);
  std::copy_n(batch.ids, rows, trace.own.ids.begin() + first);
  if (rank == 0) trace.header = batch.header;
  if (!setup_.loader_options.digests) return;
  for (size_t row = 0; row < rows; ++row) {
    trace.own.digests[first + row] = batch.notes[row].counts ? batch.notes[row].digest : 0;
  }
}

// Returns whether the engine has a warning. Only the replica's own thread may ask its engine.
bool TrainLoop::note_warning(int rank) {
  const Replica& replica = setup_.replicas[rank];
  std::string text = replica.engine->warning();
  if (text.empty() && rank == 0) text = setup_.replicas.owner().warning();
  if (text.empty()) return false;
  const MutexLock lock(mutex_);
  warnings_.push_back(fmt::format("{}: {}", replica.device->name(), text));
  return true;
}

void TrainLoop::end_step(int64_t step) {
  queued_ = step + 1;
  StepNotes& own = trace_of(step).own;
  own.wait_ns = *std::max_element(trace_of(step).waits.begin(), trace_of(step).waits.end());
  own.bad_samples = setup_.loader->stats().bad_samples;
  own.stop = stop_.load() ? 1 : 0;
  const Traffic so_far = setup_.replicas.traffic();
  own.traffic = so_far - traffic_;
  traffic_ = so_far;
  setup_.processes.send_notes(own);
  const int64_t known = queued_ - setup_.replicas.metrics_lag();
  leave_metrics(0, known);
  // Other replicas have left those of their models up to the step before.
  account_until(setup_.shape.local_models > 1 ? known - 1 : known);
  report_warnings(queued_);
}

// Process 0 keeps the receipt of all processes and can name every sample of a step.
void TrainLoop::take_notes(int64_t step) {
  Trace& trace = trace_of(step);
  trace.all = setup_.processes.take_notes();
  const auto rows = static_cast<size_t>(setup_.shape.rows);
  const size_t local = setup_.replicas.size(), all = local * trace.all.size();
  row_notes_.resize(rows);
  row_losses_.resize(setup_.options.row_losses ? trace.own.ids.size() * trace.all.size() : 0);
  for (size_t process = 0; process < trace.all.size(); ++process) {
    const StepNotes& each = trace.all[process];
    for (size_t first = 0; first < each.ids.size(); first += rows) {
      const size_t share = first / rows;  // in the order of first_row()
      const auto device = static_cast<int>(share / local * all + process * local + share % local);
      if (!row_losses_.empty()) {
        std::copy_n(each.losses.begin() + first, rows,
                    row_losses_.begin() + static_cast<size_t>(device) * rows);
      }
      if (!setup_.receipt) continue;
      for (size_t row = 0; row < rows; ++row) {
        row_notes_[row].digest = each.digests[first + row];
        row_notes_[row].counts = row_notes_[row].digest != 0;
      }
      setup_.receipt->add(device, trace.header, {each.ids.data() + first, rows}, row_notes_);
    }
  }
}

void TrainLoop::account_until(int64_t steps_done) {
  while (progress_.step < steps_done) {
    const int64_t step = progress_.step;
    take_notes(step);
    const std::vector<StepMetrics> metrics = setup_.of_all_models(trace_of(step).metrics);
    log_step(step, metrics);
    for (size_t model = 0; model < metrics.size(); ++model) {
      if (!metrics[model].finite) throw_not_finite(step, model, metrics[model]);
    }
    account(step, metrics);
  }
}

bool TrainLoop::ends_epoch(int64_t steps_done) const {
  const int64_t fed = feed_step(steps_done);
  return fed > 0 && (fed % setup_.steps_per_epoch == 0 || steps_done == setup_.end_step);
}

bool TrainLoop::checkpoint_due(int64_t steps_done) const {
  const int64_t every = setup_.options.checkpoint_steps;
  return every > 0 && steps_done % every == 0;
}

void TrainLoop::close_epoch(int64_t steps_done) {
  account_until(steps_done);
  EpochReport report = report_.epoch_report(steps_done, models_);
  result_.loss = report.loss;
  result_.accuracy = report.accuracy;
  if (!evaluate_epoch(steps_done, report)) {  // interrupted: the epoch stays open for a resume
    stop_step_.store(std::min(stop_step_.load(), steps_done - 1));
    save(steps_done);
    return;
  }
  closed_end_ = steps_done >= setup_.end_step;
  result_.replicas = report.replicas;
  for (RunModel& model : models_) model.progress.epoch = {};
  report_.begin_epoch();
  epoch_bad_samples_ = bad_samples_;
  save(steps_done);
  report.checkpoint = models_.front().checkpoint;
  for (size_t i = 0; i < report.replicas.size(); ++i) {
    report.replicas[i].best_top1 = models_[i].progress.best_top1;
    report.replicas[i].checkpoint = models_[i].checkpoint;
  }
  if (setup_.processes.is_rank0()) report_.report_epoch(report);
  report_.start_clock();
}

// Returns false if the evaluation was interrupted.
bool TrainLoop::evaluate_epoch(int64_t steps_done, EpochReport& report) {
  if (!setup_.eval) return true;
  const bool end = steps_done >= setup_.end_step;
  const double every = setup_.options.eval_every_epochs;
  const double epoch = static_cast<double>(report.epoch + 1);
  const bool due = every > 0 && std::fmod(epoch, every) < 1;
  if (!end && !due) return true;
  const SpanTimer timer(tracer(), SpanKind::evaluate, steps_done - 1);
  const auto run = [&](int views) {
    std::string bad_samples;
    if (end && views == 1 && !setup_.options.out.empty()) {  // one list, of the last evaluation
      bad_samples = quarantine_file(setup_.options.out, "quarantine_eval", setup_.processes.rank());
      std::filesystem::remove(bad_samples);
    }
    return evaluate_models(setup_, views, stop_, bad_samples);
  };
  const std::vector<EvalResult> plain = run(1);
  report.eval = mean_of(plain);
  if (!report.eval->complete) return false;
  if (end) {
    const int views = setup_.options.recipe.eval_views;
    last_evals_ = views == 1 ? plain : run(views);
    result_.eval_plain = report.eval;
    result_.eval = mean_of(last_evals_);
    if (!result_.eval->complete) return false;
  }
  for (size_t i = 0; i < models_.size(); ++i) {
    ModelProgress& progress = models_[i].progress;
    progress.last_top1 = plain[i].top1;
    progress.last_top5 = plain[i].top5;
    progress.best_top1 = std::max(progress.best_top1, plain[i].top1);
  }
  for (size_t i = 0; i < report.replicas.size(); ++i) report.replicas[i].eval = plain[i];
  return true;
}

void TrainLoop::save(int64_t steps_done) {
  account_until(steps_done);  // throws if a step was not finite, so that it is never saved
  std::vector<float> residuals;
  WireState* const wire = setup_.replicas.collective().wire();
  if (wire && wire->residual_floats() > 0) residuals = wire->residuals();  // of all processes
  // Other processes send the states of models that process 0 does not have.
  if (!setup_.saves || (!setup_.processes.is_rank0() && setup_.all_models_here())) return;
  const SpanTimer timer(tracer(), SpanKind::checkpoint, steps_done - 1);
  // The receipt comes first, so that it is never older than the checkpoint.
  if (setup_.receipt) setup_.receipt->save();
  step_log_.flush();
  progress_.step = steps_done;
  progress_.loader = setup_.loader->state();
  if (progress_.loader.next_step != feed_step(steps_done)) {
    throw std::logic_error(fmt::format("the feed stands at step {}, training at {}",
                                       progress_.loader.next_step, feed_step(steps_done)));
  }
  // All are written before old ones are removed, so that there is always a step that all have.
  for (size_t model = 0; model < models_.size(); ++model) {
    save_model(model, model == 0 ? std::move(residuals) : std::vector<float>());
  }
  if (setup_.processes.is_rank0()) {
    for (const RunModel& model : models_) {
      remove_old_checkpoints(model.folder, steps_done, setup_.options.keep_checkpoints);
    }
  }
  report_.start_clock();
}

// Process 0 writes; the process that trains the model has its state.
void TrainLoop::save_model(size_t model, std::vector<float> residuals) {
  const std::vector<Engine*> own = setup_.replicas.owners();
  const auto process = static_cast<int>(model / own.size());
  TrainState state;
  if (setup_.all_models_here() || process == setup_.processes.rank()) {
    state = read_state(*own[model % own.size()], setup_.options.recipe);
  }
  state.residuals = std::move(residuals);
  if (!state.residuals.empty()) state.residual_replicas = setup_.shape.all_replicas;
  if (!setup_.all_models_here()) setup_.processes.share(state, process);
  if (!setup_.processes.is_rank0()) return;
  CheckpointInfo info = progress_;
  static_cast<ModelProgress&>(info) = models_[model].progress;
  models_[model].checkpoint = write_checkpoint(models_[model].folder, info, state);
}

void TrainLoop::account(int64_t step, const std::vector<StepMetrics>& metrics) {
  const Trace& trace = trace_of(step);
  int64_t wait_ns = trace.own.wait_ns;
  Traffic traffic;
  for (const StepNotes& notes : trace.all) {
    wait_ns = std::max(wait_ns, notes.wait_ns);
    traffic += notes.traffic;
  }
  report_.add_step(metrics, wait_ns, traffic, models_);
  progress_.step = step + 1;
  if (!setup_.processes.is_rank0()) return;
  check_bad_samples(trace);
  if (progress_.step % log_interval_ == 0 || ends_epoch(progress_.step)) {
    report_.report_step(progress_.step, trace.learning_rate, bad_samples_);
    step_log_.flush();
  }
}

void TrainLoop::log_step(int64_t step, const std::vector<StepMetrics>& metrics) {
  StepRow row{.step = step};
  for (const StepMetrics& each : metrics) {
    row.loss_sum += static_cast<float>(each.loss_sum);
    row.weight_sum += static_cast<float>(each.weight_sum);
    row.top1 += static_cast<float>(each.top1);
  }
  row.gradient_norm = metrics.size() == 1 ? static_cast<float>(metrics[0].gradient_norm)
                                          : std::numeric_limits<float>::quiet_NaN();
  // Where only gradients overflow, the loss does not show it.
  if (!std::ranges::all_of(metrics, &StepMetrics::finite)) {
    row.gradient_norm = std::numeric_limits<float>::infinity();
  }
  step_log_.add(row, row_losses_);
}

// Each process checks its own share of the budget; this checks the sum of all processes.
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

// Each process knows only its own warnings. As with everything, only the first process reports.
void TrainLoop::report_warnings(int64_t steps_done) {
  std::vector<std::string> warnings;
  {
    const MutexLock lock(mutex_);
    warnings.swap(warnings_);
  }
  if (setup_.processes.is_rank0()) report_.report_warnings(steps_done, warnings);
}

std::string TrainLoop::last_checkpoint_text() const {
  if (!setup_.processes.is_rank0()) return "";
  const std::string& last = models_.front().checkpoint;
  return last.empty() ? "; no checkpoint was written" : "; the last good checkpoint is " + last;
}

void TrainLoop::throw_not_finite(int64_t step, size_t model, const StepMetrics& metrics) {
  std::vector<std::string> rows;
  for (size_t process = 0; process < trace_of(step).all.size(); ++process) {
    const std::vector<SampleId>& ids = trace_of(step).all[process].ids;
    for (size_t i = 0; i < ids.size(); ++i) {
      const size_t share = i / static_cast<size_t>(setup_.shape.rows);  // as in take_notes()
      const size_t local = setup_.replicas.size();
      const size_t replica = process * local + share % local;
      if (replica * models_.size() / static_cast<size_t>(setup_.shape.all_replicas) != model) {
        continue;
      }
      rows.push_back(fmt::format("{} {}", ids[i], setup_.train.name(ids[i])));
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
      "step {}{}: the loss or a gradient{} is not finite (loss sum {} over weight {}); the "
      "weights were not changed by it; {}{}{}{}",
      step, late > 0 ? fmt::format(", noticed {} steps later", late) : "", models_[model].of,
      metrics.loss_sum, metrics.weight_sum,
      count > 0 ? fmt::format("its {} samples begin with {}", count, fmt::join(rows, ", "))
                : "process 0 names its samples",
      where, last_checkpoint_text(),
      setup_.writes() ? fmt::format("; stoker rewind {} --step {} --replay says which rows did it",
                                    setup_.options.out, step)
                      : ""));
}

void TrainLoop::finish_result() {
  result_.step = progress_.step;
  result_.total_steps = progress_.total_steps;
  result_.epochs_done =
      static_cast<double>(feed_step(progress_.step)) / static_cast<double>(setup_.steps_per_epoch);
  result_.interrupted = !closed_end_;
  if (result_.interrupted) {
    result_.eval.reset();
    result_.eval_plain.reset();
  }
  if (has_samples(models_)) {
    const EpochReport unfinished = report_.epoch_report(progress_.step, models_);
    result_.loss = unfinished.loss;
    result_.accuracy = unfinished.accuracy;
    result_.replicas = unfinished.replicas;
  }
  report_.add_rates(result_);
  for (const RunModel& model : models_) {
    result_.best_top1 = std::max(result_.best_top1, model.progress.best_top1);
  }
  result_.bad_samples = bad_samples_;
  result_.cache = setup_.loader->stats().cache;
  result_.checkpoint = models_.front().checkpoint;
  result_.replicas.resize(static_cast<size_t>(setup_.shape.replica_models));
  for (size_t i = 0; i < result_.replicas.size(); ++i) {
    ReplicaFigures& replica = result_.replicas[i];
    replica.eval.reset();
    if (result_.eval) replica.eval = last_evals_[i];
    replica.best_top1 = models_[i].progress.best_top1;
    replica.checkpoint = models_[i].checkpoint;
  }
  if (setup_.receipt) result_.receipt = setup_.options.out + "/receipt.json";
}

}  // namespace stoker
