#include "bench/suite/scaling_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "bench/suite/scaling_table.h"
#include "pipeline/source/subset_source.h"
#include "pipeline/source/synthetic_source.h"
#include "tools/machine/load.h"
#include "train/engine/engine.h"
#include "train/model/models.h"

namespace stoker {
namespace {

constexpr int kScalingWarmupSteps = 3;
constexpr int kScalingClasses = 10;

// Records when each step ended.
class StepClock final : public TrainObserver {
 public:
  StepClock() : begin_ns_(steady_now_ns()) {}

  void on_step(const StepReport&) override {
    ends_.push_back(1e-9 * static_cast<double>(steady_now_ns() - begin_ns_));
    cpu_.push_back(process_cpu_seconds());
  }
  const std::vector<double>& ends() const { return ends_; }
  // The median length of a step, and of all together, for `count` steps after the first `warmup`.
  double median_seconds(int64_t warmup, int64_t count) const {
    std::vector<double> seconds;
    for (int64_t i = warmup; i < warmup + count; ++i) {
      seconds.push_back(ends_.at(i) - ends_.at(i - 1));
    }
    return median(std::move(seconds));
  }
  double seconds(int64_t warmup, int64_t count) const {
    return ends_.at(warmup + count - 1) - ends_.at(warmup - 1);
  }
  double cpu_seconds(int64_t warmup, int64_t count) const {
    return cpu_.at(warmup + count - 1) - cpu_.at(warmup - 1);
  }

 private:
  const int64_t begin_ns_;
  std::vector<double> ends_;  // since the begin
  std::vector<double> cpu_;   // of the process, at each end
};

int64_t steps_of_epoch(const ScalingRow& row) {
  return (row.samples + row.global_batch - 1) / row.global_batch;
}

// Epochs that are timed.
int64_t epochs_of(const ScalingOptions& options, const ScalingRow& row) {
  const int64_t steps = steps_of_epoch(row);
  return (options.steps + steps - 1) / steps;
}

// Steps by which a step may be reported late, all of which are reported when a run ends. Behind the
// timed ones there are as many more, so that their begin and their end are equally late.
int64_t most_late(const ScalingOptions& options, const ScalingRow& row) {
  const int64_t queued = options.on_gpus ? Engine::kMetricsKept : 0;
  return queued + (row.reduction == ReduceKind::independent ? 1 : 0);
}

TrainOptions train_options(const ScalingOptions& options, const ScalingRow& row) {
  TrainOptions train;
  train.recipe = default_recipe(row.model);
  train.recipe.set_input(row.size);
  train.recipe.batch = row.global_batch;
  train.recipe.micro_batch_size = row.global_batch / row.devices;
  for (int i = 0; i < row.devices; ++i) {
    train.devices.push_back(fmt::format("{}:{}", options.on_gpus ? "cuda" : "cpu", i));
  }
  train.threads = options.on_gpus ? 0 : row.devices;
  train.feed.workers = options.workers;
  train.reduce = row.reduction;
  if (row.devices > 1) train.grad_wire = row.wire;  // a single device sends nothing
  train.log_interval = 1;
  train.receipt = false;
  return train;
}

// Returns the samples of a run that needs `count` of them.
std::unique_ptr<Source> source_of(const ScalingOptions& options, const ScalingRow& row,
                                  int64_t count) {
  if (options.data == nullptr || row.feed == FeedKind::synthetic) {
    return make_synthetic_source(count, row.size, kScalingClasses, 1);
  }
  return std::make_unique<SubsetSource>(*options.data, row.samples);
}

void measure_row(const ScalingOptions& options, ScalingRow& row) {
  MeasureHooks hooks{.feed = row.feed};
  TrainOptions train = train_options(options, row);
  train.measure = &hooks;
  const bool epochs = row.samples > 0;
  const int64_t warmup = epochs ? steps_of_epoch(row) : kScalingWarmupSteps;
  const int64_t timed = epochs ? epochs_of(options, row) * steps_of_epoch(row) : options.steps;
  train.max_steps = warmup + timed + most_late(options, row);
  const int64_t count = epochs ? row.samples : int64_t{row.global_batch} * train.max_steps;
  const auto source = source_of(options, row, count);
  const int64_t trained = epochs ? (train.max_steps + warmup - 1) / warmup * count : count;
  train.recipe.set_epochs(static_cast<double>((trained + source->size() - 1) / source->size()));
  StepClock clock;
  Trainer trainer(*source, nullptr, train, clock);
  row.traffic = trainer.run().traffic;
  const double images = epochs ? static_cast<double>(row.samples * epochs_of(options, row))
                               : static_cast<double>(row.global_batch) * options.steps;
  row.rate.push_back(epochs ? images / clock.seconds(warmup, timed)
                            : row.global_batch / clock.median_seconds(warmup, timed));
  row.cpu_ms.push_back(1e3 * clock.cpu_seconds(warmup, timed) / images);
  const StepWarmUp warm = warm_up_of(clock.ends());
  row.warmup_steps.push_back(static_cast<double>(warm.steps));
  row.warmup_seconds.push_back(warm.seconds);
}

void check_scaling(const ScalingOptions& options) {
  if (options.counts.empty() || options.models.empty() || options.sizes.empty() ||
      options.samples.empty() || options.feeds.empty() || options.reductions.empty() ||
      options.wires.empty() || options.steps < 1 || options.repeats < 1 || options.workers < 0 ||
      !(options.weak || options.strong)) {
    throw std::invalid_argument("bench scaling: nothing to measure");
  }
  for (const int count : options.counts) {
    if (count >= 1 && (!options.strong || options.batch % count == 0)) continue;
    throw std::invalid_argument(fmt::format(
        "bench scaling: a batch of {} cannot be cut into {} equal parts for strong scaling",
        options.batch, count));
  }
  for (const int64_t samples : options.samples) {
    if (samples >= 0 && (options.data == nullptr || samples <= options.data->size())) continue;
    throw std::invalid_argument(fmt::format("bench scaling: {} samples of a data set of {}",
                                            samples,
                                            options.data ? options.data->size() : samples));
  }
  for (const int size : options.sizes) {
    if (size < 0) throw std::invalid_argument(fmt::format("bench scaling: {} pixels", size));
  }
}

// Adds the rows of one line: all numbers of devices.
void add_line(const ScalingOptions& options, const ScalingRow& line,
              std::vector<ScalingRow>& rows) {
  for (const int count : options.counts) {
    ScalingRow& row = rows.emplace_back(line);
    row.devices = count;
    row.global_batch = line.weak ? count * options.batch : options.batch;
  }
}

// Adds a line for each strategy.
void add_lines(const ScalingOptions& options, ScalingRow line, std::vector<ScalingRow>& rows) {
  for (const ReduceKind reduction : options.reductions) {
    for (const GradWire wire : options.wires) {
      if (!sends_gradients(reduction) && wire != options.wires.front()) continue;
      line.reduction = reduction;
      line.wire = sends_gradients(reduction) ? wire : GradWire::fp32;
      add_line(options, line, rows);
    }
  }
}

std::vector<ScalingRow> rows_of(const ScalingOptions& options, bool weak) {
  std::vector<ScalingRow> rows;
  for (const std::string& model : options.models) {
    for (const int size : options.sizes) {
      ScalingRow line;
      line.weak = weak;
      line.model = model;
      line.size = size > 0 ? Size{size, size} : default_recipe(model).input;
      line.parameters = total_count(parameter_table(make_net(model, line.size, kScalingClasses)));
      for (const int64_t samples : options.samples) {
        for (const FeedKind feed : options.feeds) {
          line.samples = samples;
          line.feed = feed;
          add_lines(options, line, rows);
        }
      }
    }
  }
  return rows;
}

}  // namespace

Report bench_scaling(const ScalingOptions& options) {
  check_scaling(options);
  std::vector<ScalingRow> rows;
  for (const bool weak : {true, false}) {
    if (!(weak ? options.weak : options.strong)) continue;
    const auto more = rows_of(options, weak);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    for (ScalingRow& row : rows) measure_row(options, row);
  }
  Report report;
  report.bench = "scaling";
  report.settings = {{"devices", options.on_gpus ? "cuda" : "cpu"},
                     {"batch", options.batch},
                     {"steps", options.steps},
                     {"warmup_steps", kScalingWarmupSteps},
                     {"repeats", options.repeats},
                     {"workers", options.workers}};
  fill_scaling_report(rows, report);
  report.notes = {
      "A rate is the batch of all devices over the median step of a run, or the samples of whole "
      "epochs over their time where there is a data set; medians and intervals are over runs.",
      "Bytes are those that a replica sends and receives in a step, gradients and weights "
      "together, as if each were alone on its machine.",
      "Weak: the batch is of each device. Strong: the batch is of all devices together.",
      fmt::format("A run warms up until {} steps in a row take at most {:g} times the median of "
                  "the second half of its steps.",
                  kWarmSteps, kWarmFactor)};
  if (!options.on_gpus) {
    report.notes.push_back(
        "Devices are replicas on the host's cores with one thread each; more of them than cores "
        "share the cores, and memory bandwidth and caches are always shared.");
  }
  return report;
}

}  // namespace stoker
