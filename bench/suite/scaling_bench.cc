#include "bench/suite/scaling_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "bench/suite/scaling_table.h"
#include "pipeline/measure_hooks.h"
#include "pipeline/source/synthetic_source.h"
#include "tools/machine/cpu_time.h"
#include "train/model/models.h"

namespace stoker {
namespace {

constexpr int kWarmupSteps = 3;
constexpr int kClasses = 10;

// Records when each step ended.
class StepClock final : public TrainObserver {
 public:
  void on_step(const StepReport& report) override {
    if (report.step < kWarmupSteps) return;
    done_ns_.push_back(steady_now_ns());
    (done_ns_.size() == 1 ? cpu_begin_ : cpu_end_) = process_cpu_seconds();
  }
  double median_seconds() const {
    std::vector<double> seconds;
    for (size_t i = 1; i < done_ns_.size(); ++i) {
      seconds.push_back(1e-9 * static_cast<double>(done_ns_[i] - done_ns_[i - 1]));
    }
    return median(std::move(seconds));
  }
  double cpu_seconds_per_step() const {
    return (cpu_end_ - cpu_begin_) / static_cast<double>(done_ns_.size() - 1);
  }

 private:
  std::vector<int64_t> done_ns_;  // when the last warm-up step and each step after it was done
  double cpu_begin_ = 0, cpu_end_ = 0;
};

TrainOptions train_options(const ScalingOptions& options, const ScalingRow& row) {
  TrainOptions train;
  train.recipe = default_recipe(row.model);
  train.recipe.set_epochs(1);
  train.recipe.batch = row.global_batch;
  train.recipe.micro_batch_size = row.global_batch / row.devices;
  for (int i = 0; i < row.devices; ++i) {
    train.devices.push_back(fmt::format("{}:{}", options.on_gpus ? "cuda" : "cpu", i));
  }
  train.threads = options.on_gpus ? 0 : row.devices;
  train.feed.workers = 1;
  train.reduce = row.reduction;
  if (row.devices > 1) train.grad_wire = row.wire;  // a single device sends nothing
  train.log_interval = 1;
  train.max_steps = kWarmupSteps + options.steps;
  train.receipt = false;
  return train;
}

void measure(const ScalingOptions& options, ScalingRow& row) {
  MeasureHooks synthetic{.feed = FeedKind::synthetic};
  TrainOptions train = train_options(options, row);
  train.measure = &synthetic;
  const auto source = make_synthetic_source(int64_t{row.global_batch} * train.max_steps,
                                            train.recipe.input, kClasses, 1);
  StepClock clock;
  Trainer trainer(*source, nullptr, train, clock);
  row.traffic = trainer.run().traffic;
  row.rate.push_back(row.global_batch / clock.median_seconds());
  row.cpu_ms.push_back(1e3 * clock.cpu_seconds_per_step() / row.global_batch);
}

void check(const ScalingOptions& options) {
  if (options.counts.empty() || options.models.empty() || options.reductions.empty() ||
      options.wires.empty() || options.steps < 1 || options.repeats < 1 ||
      !(options.weak || options.strong)) {
    throw std::invalid_argument("bench scaling: nothing to measure");
  }
  for (const int count : options.counts) {
    if (count >= 1 && (!options.strong || options.batch % count == 0)) continue;
    throw std::invalid_argument(fmt::format(
        "bench scaling: a batch of {} cannot be cut into {} equal parts for strong scaling",
        options.batch, count));
  }
}

std::vector<ScalingRow> rows_of(const ScalingOptions& options, bool weak) {
  std::vector<ScalingRow> rows;
  for (const std::string& model : options.models) {
    const NetSpec net = make_net(model, default_recipe(model).input, kClasses);
    const int64_t parameters = total_count(parameter_table(net));
    for (const ReduceKind reduction : options.reductions) {
      for (const GradWire wire : options.wires) {
        if (!sends_gradients(reduction) && wire != options.wires.front()) continue;
        for (const int count : options.counts) {
          ScalingRow row;
          row.weak = weak;
          row.model = model;
          row.parameters = parameters;
          row.reduction = reduction;
          row.wire = sends_gradients(reduction) ? wire : GradWire::fp32;
          row.devices = count;
          row.global_batch = weak ? count * options.batch : options.batch;
          rows.push_back(std::move(row));
        }
      }
    }
  }
  return rows;
}

}  // namespace

Report bench_scaling(const ScalingOptions& options) {
  check(options);
  std::vector<ScalingRow> rows;
  for (const bool weak : {true, false}) {
    if (!(weak ? options.weak : options.strong)) continue;
    const auto more = rows_of(options, weak);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    for (ScalingRow& row : rows) measure(options, row);
  }
  Report report;
  report.bench = "scaling";
  report.settings = {{"devices", options.on_gpus ? "cuda" : "cpu"},
                     {"batch", options.batch},
                     {"steps", options.steps},
                     {"warmup_steps", kWarmupSteps},
                     {"repeats", options.repeats},
                     {"feed", "synthetic"}};
  fill_scaling_report(rows, report);
  report.notes = {
      "A rate is the batch of all devices over the median step of a run; medians and intervals are "
      "over runs.",
      "Bytes are those that a replica sends and receives in a step, gradients and weights "
      "together, "
      "as if each were alone on its machine.",
      "Weak: the batch is of each device. Strong: the batch is of all devices together."};
  if (!options.on_gpus) {
    report.notes.push_back(
        "Devices are replicas on the host's cores with one thread each; more of them than cores "
        "share the cores, and memory bandwidth and caches are always shared.");
  }
  return report;
}

}  // namespace stoker
