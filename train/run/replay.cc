#include "train/run/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <limits>
#include <stdexcept>

#include "pipeline/files/temporary_folder.h"
#include "pipeline/receipt/files.h"
#include "train/run/loop.h"
#include "train/run/setup.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

// A folder for a run that is thrown away.
class ScratchRun {
 public:
  const std::string& path() const { return folder_.path(); }
  void begin_at(const std::string& checkpoint) const {
    const fs::path folder = checkpoint_folder(path());
    fs::create_directories(folder);
    fs::create_directory_symlink(fs::absolute(checkpoint),
                                 folder / fs::path(checkpoint).filename());
  }

 private:
  TemporaryFolder folder_;
};

void require_one_model(const TrainOptions& options) {
  if (options.reduce == ReduceKind::independent) {
    throw std::invalid_argument(
        "replay: the replicas of this run train models of their own, and only steps of one model "
        "are replayed");
  }
  if (options.sync_batch_norm) {
    throw std::invalid_argument(
        "replay: the batch norms of this run are synchronised between replicas, and only steps "
        "whose micro-batches have their own are replayed");
  }
}

// Sums of fp32 do not depend on the number of replicas, unless each sums parts of its own first.
TrainOptions options_of_replay(TrainOptions options, const std::string& folder, int64_t step,
                               bool receipt) {
  if (options.grad_wire == GradWire::fp32 && options.accumulate == 1) options.replicas = 1;
  options.reduce = ReduceKind::automatic;
  options.devices.clear();
  options.out = folder;
  options.resume = true;
  options.max_steps = step;
  options.receipt = receipt;
  options.row_losses = false;
  options.checkpoint_steps = 0;
  options.feed.max_bad = std::numeric_limits<int32_t>::max();
  options.feed.seek_index = "off";
  return options;
}

template <typename Found>
void note_difference(Replay& replay, int64_t step, bool same, const Found& text) {
  if (same || !replay.difference.empty()) return;
  replay.difference = fmt::format("step {}: {}", step, text());
}

void compare_losses(const std::string& run, const std::string& again, int64_t end, Replay& replay) {
  const std::vector<StepRow> before = read_steps(run), now = read_steps(again);
  for (const StepRow& row : now) {
    if (row.step >= end) break;
    const auto was = std::ranges::lower_bound(before, row.step, {}, &StepRow::step);
    if (was == before.end() || was->step != row.step) continue;
    ++replay.compared;
    note_difference(replay, row.step, was->loss_sum == row.loss_sum, [&] {
      return fmt::format("the loss is {:.9g}, and in the run it was {:.9g}", row.loss(),
                         was->loss());
    });
  }
}

void compare_receipts(const std::string& run, const std::string& again, int64_t more_steps,
                      Replay& replay) {
  if (!fs::exists(run + "/receipt.json") || !fs::exists(again + "/receipt.json")) return;
  const ReceiptData before = read_receipt(run), now = read_receipt(again);
  for (size_t i = 0; i < now.steps.size(); ++i) {
    const int64_t at = now.first_step + static_cast<int64_t>(i) - before.first_step;
    if (at < 0 || at >= std::ssize(before.steps)) continue;
    note_difference(replay, now.first_step + static_cast<int64_t>(i) + more_steps,
                    before.steps[static_cast<size_t>(at)].digest == now.steps[i].digest,
                    [] { return "the pixels are not those of the receipt"; });
  }
}

// The step itself, with any weights, on an engine that takes the batch in chunks.
class ReplayedStep {
 public:
  ReplayedStep(const TrainSetup& setup, const FedStep& step, int64_t number, int threads)
      : setup_(setup),
        step_(step),
        number_(number),
        state_(read_state(setup.replicas.owner(), setup.options.recipe)),
        batch_(setup.options.recipe.batch),
        weights_(step.batch().weights(), step.batch().weights() + batch_),
        results_(static_cast<size_t>(batch_)) {
    ReplicaShape shape = setup.shape;
    const int micro_batches = batch_ / shape.micro_batch_size;
    int together = std::clamp(threads, 1, micro_batches);
    while (micro_batches % together != 0) --together;
    shape.rows = together * shape.micro_batch_size;
    shape.parts = batch_ / shape.rows;
    shape.all_replicas = 1;
    shape.engine_threads = together;
    shape.update_batch = batch_;
    chunk_ = shape.rows;
    engine_ = make_cpu_engine(setup.net, engine_options(setup.options, shape));
    const int64_t fed = number - setup.more_steps;
    rates_.more_updates = setup.more_steps;
    rates_.update_batch = setup.shape.update_batch;
    set_rates(setup.options.recipe, parameter_table(setup.net), fed, setup.total_feed_steps,
              setup.steps_per_epoch, rates_);
    decay_ = average_decay(setup.options.recipe.average, fed + 1, setup.total_feed_steps);
  }

  std::span<const float> weights() const { return weights_; }
  std::span<const RowResult> results() const { return results_; }
  std::span<const float> gradient() const {
    return engine_->reduced_gradients().first(static_cast<size_t>(engine_->gradient_floats()));
  }

  void begin() { write_state(state_, *engine_); }

  // Runs the rows [first, first + count) with these weights of a global batch; the sum of their
  // gradients is then gradient().
  void pass(std::span<const float> weights, int first, int count) {
    engine_->expect_frozen(rates_.tensors);
    for (int row = first; row < first + count; row += chunk_) {
      BatchRows rows = rows_from(row);
      rows.weights = weights.data() + row;
      rows.results = results_.data() + row;
      rows.first = row == first;
      rows.last = row + chunk_ >= first + count;
      engine_->forward_backward(rows);
    }
    sum_buffers();
  }
  void pass(std::span<const float> weights) { pass(weights, 0, batch_); }

  // Passes one row, among those of its chunk.
  void pass_row(int row) {
    std::vector<float> alone(static_cast<size_t>(batch_));
    alone[static_cast<size_t>(row)] = weights_[static_cast<size_t>(row)];
    pass(alone, row / chunk_ * chunk_, chunk_);
  }

  StepMetrics update() {
    engine_->update(rates_.args);
    const StepMetrics metrics = engine_->step_metrics();
    if (decay_ >= 0) {
      engine_->blend_average(decay_, setup_.options.recipe.average.kind == AverageKind::lookahead);
    }
    return metrics;
  }

 private:
  BatchRows rows_from(int row) const {
    FedBatch all = fed(step_.batch());
    BatchRows rows = all.rows;
    rows.images += int64_t{row} * setup_.net.input.width * setup_.net.input.height * 3;
    rows.labels += row;
    if (rows.targets) rows.targets += int64_t{row} * setup_.net.classes;
    if (rows.mix_labels) {
      rows.mix_labels += row;
      rows.mix_weights += row;
    }
    rows.position = (number_ - setup_.more_steps) * batch_ + row;
    return rows;
  }

  void sum_buffers() {
    const std::span<float> sum = engine_->reduced_gradients();
    const auto buffers = engine_->gradient_buffers();
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (buffers[i] == sum.data()) continue;
      for (size_t k = 0; k < sum.size(); ++k) sum[k] = (i == 0 ? 0 : sum[k]) + buffers[i][k];
    }
  }

  const TrainSetup& setup_;
  const FedStep& step_;
  const int64_t number_;
  const TrainState state_;
  const int batch_;
  const std::vector<float> weights_;
  std::vector<RowResult> results_;
  int chunk_ = 0;
  std::unique_ptr<Engine> engine_;
  StepRates rates_;
  float decay_ = -1;
};

double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

// NaN counts as more than any number.
double sortable(float loss) {
  return std::isnan(loss) ? std::numeric_limits<double>::infinity() : loss;
}

// REQUIRES: the whole batch has passed.
std::vector<RowShare> rank_rows(ReplayedStep& step, int parts) {
  std::vector<RowShare> ranked;
  double loss_sum = 0;
  for (size_t row = 0; row < step.weights().size(); ++row) {
    const float weight = step.weights()[row];
    if (weight == 0) continue;
    const RowResult result = step.results()[row];
    loss_sum += weight * result.loss;
    ranked.push_back({static_cast<int>(row), result, weight * result.loss,
                      std::numeric_limits<double>::quiet_NaN()});
  }
  for (RowShare& row : ranked) row.loss /= loss_sum;
  std::ranges::stable_sort(ranked, std::greater<>(),
                           [](const RowShare& row) { return sortable(row.result.loss); });
  const std::vector<float> whole(step.gradient().begin(), step.gradient().end());
  const double square = dot(whole, whole);
  if (!std::isfinite(square) || square == 0) return ranked;
  for (RowShare& row : std::span(ranked).first(std::min<size_t>(ranked.size(), parts))) {
    step.pass_row(row.row);
    row.gradient = dot(step.gradient(), whole) / square;
  }
  return ranked;
}

double mean_loss(std::span<const RowResult> results, std::span<const float> weights) {
  double sum = 0, weight_sum = 0;
  for (size_t row = 0; row < weights.size(); ++row) {
    if (weights[row] == 0) continue;
    sum += weights[row] * results[row].loss;
    weight_sum += weights[row];
  }
  return sum / weight_sum;
}

std::vector<float> without_rows(std::span<const float> weights, std::span<const int> rows) {
  std::vector<float> left(weights.begin(), weights.end());
  for (const int row : rows) left[static_cast<size_t>(row)] = 0;
  return left;
}

StepOutcome outcome_without(ReplayedStep& step, const std::vector<int>& rows,
                            std::span<const float> judged) {
  const std::vector<float> weights = without_rows(step.weights(), rows);
  step.begin();
  step.pass(weights);
  const StepMetrics metrics = step.update();
  StepOutcome outcome{rows, metrics.loss_sum / metrics.weight_sum, metrics.gradient_norm, 0};
  step.pass(judged);
  outcome.loss_after = mean_loss(step.results(), judged);
  return outcome;
}

void compare_step(const std::string& run, int64_t number, double loss, Replay& replay) {
  const std::vector<StepRow> steps = read_steps(run);
  const auto was = std::ranges::lower_bound(steps, number, {}, &StepRow::step);
  if (was == steps.end() || was->step != number) return;
  ++replay.compared;
  const bool both_broken = !std::isfinite(loss) && !std::isfinite(was->loss());
  // The run summed in the order of its replicas' parts.
  const bool same = both_broken || std::abs(loss - was->loss()) <= 1e-6 * std::abs(was->loss());
  note_difference(replay, number, same, [&] {
    return fmt::format("the loss is {:.9g}, and in the run it was {:.9g}", loss, was->loss());
  });
}

}  // namespace

Replay replay_step(const FedStep& step, const TrainOptions& options, const std::string& run,
                   const RunPlace& place, int64_t number, const Source& source,
                   std::span<const std::vector<int>> without, int parts) {
  require_one_model(options);
  const ScratchRun scratch;
  Replay replay;
  const auto found = newest_checkpoints({checkpoint_folder(run)}, nullptr, number);
  if (!found.empty()) {
    replay.from = found.front();
    scratch.begin_at(replay.from);
  } else if (place.more_steps != 0) {
    throw std::invalid_argument(fmt::format(
        "replay: no checkpoint before step {} is left, and the run changed its batch", number));
  }
  const bool receipt = fs::exists(run + "/receipt.json");
  const TrainOptions again = options_of_replay(options, scratch.path(), number, receipt);
  TrainSetup setup(source, nullptr, again, {});
  replay.first_step = setup.progress.step;
  TrainObserver nobody;
  const std::atomic<bool> stop{false};
  if (replay.first_step < number) {
    TrainLoop(setup, nobody, stop).run();
    compare_losses(run, scratch.path(), number, replay);
    compare_receipts(run, scratch.path(), place.more_steps, replay);
  }
  ReplayedStep replayed(setup, step, number, setup.options.threads);
  replayed.begin();
  replayed.pass(replayed.weights());
  compare_step(run, number, mean_loss(replayed.results(), replayed.weights()), replay);
  replay.rows = rank_rows(replayed, parts);
  std::vector<float> judged(replayed.weights().begin(), replayed.weights().end());
  for (const std::vector<int>& rows : without) judged = without_rows(judged, rows);
  replay.outcomes.push_back(outcome_without(replayed, {}, judged));
  for (const std::vector<int>& rows : without) {
    replay.outcomes.push_back(outcome_without(replayed, rows, judged));
  }
  return replay;
}

}  // namespace stoker
