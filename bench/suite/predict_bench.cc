#include "bench/suite/predict_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "bench/suite/throttled_run.h"

namespace stoker {
namespace {

constexpr int kPredictWarmupSteps = 6;
constexpr int kComparedSlots = 3;
constexpr double kMiB = 1 << 20;

// A setting of the run, with a value per repeat.
struct Compared {
  ScheduleOptions options;
  SchedulePrediction predicted;
  std::vector<double> rate, gap_ms;

  std::string name() const {
    return fmt::format("{} devices, {} slots, {}, cut on {}", options.gpus, options.slots,
                       to_string(options.reduce), to_string(options.slice));
  }
};

void check_prediction(const PredictOptions& options) {
  if (options.counts.empty() || options.rows < 1 || options.size < 1 || !(options.step_ms > 0) ||
      options.grad_mib < 0 || options.bucket_mib < 0 || options.steps < 1 || options.repeats < 1) {
    throw std::invalid_argument(
        fmt::format("bench predict: {} numbers of devices, {} samples of {} px, steps of {} ms, "
                    "gradients of {} MiB in buckets of {} MiB, {} steps, {} repeats",
                    options.counts.size(), options.rows, options.size, options.step_ms,
                    options.grad_mib, options.bucket_mib, options.steps, options.repeats));
  }
}

std::vector<Compared> predicted_settings(const PredictOptions& options) {
  std::vector<Compared> all;
  const auto add = [&](int gpus, int slots, ReduceKind reduce, CutOn slice) {
    Compared compared;
    compared.options.gpus = gpus;
    compared.options.slots = slots;
    compared.options.reduce = reduce;
    compared.options.slice = slice;
    compared.options.steps = options.steps;
    compared.options.warmup = kPredictWarmupSteps;
    all.push_back(std::move(compared));
  };
  for (const int count : options.counts) {
    for (const ReduceKind reduce : {ReduceKind::none, ReduceKind::nccl, ReduceKind::host}) {
      if (count == 1 && reduce != ReduceKind::none) continue;  // there is nothing to sum
      add(count, 2, reduce, CutOn::host);
    }
  }
  const int most = options.counts.back();
  for (int slots = 0; slots <= kComparedSlots; ++slots) {
    if (slots != 2) add(most, slots, ReduceKind::none, CutOn::host);
  }
  if (most > 1) add(most, 2, ReduceKind::none, CutOn::each_device);
  return all;
}

void fill_predict_report(std::vector<Compared>& all, Report& report) {
  Table table{"Measured on host devices with throttled links, and predicted",
              {"devices", "slots", "sum", "cut on", "images/s", "predicted", "difference", "gap ms",
               "predicted gap ms"},
              {}};
  Plot plot{"predict", "Measured beside predicted", "devices, slots, sum, cut on", "images/s", {},
            {}};
  double largest = 0;
  for (Compared& each : all) {
    const ScheduleOptions& options = each.options;
    const Summary rate =
        report.add({"rate, " + each.name(), "images/s", Better::neither, std::move(each.rate)});
    const Summary gap =
        report.add({"gap, " + each.name(), "ms", Better::neither, std::move(each.gap_ms)});
    const double predicted = each.predicted.images_per_second;
    const double difference = (rate.median - predicted) / predicted;
    largest = std::max(largest, std::abs(difference));
    const char *reduce = to_string(options.reduce), *cut = to_string(options.slice);
    table.rows.push_back({std::to_string(options.gpus), std::to_string(options.slots), reduce, cut,
                          with_interval(rate), significant(predicted),
                          fmt::format("{:+.1f} %", 100 * difference), with_interval(gap),
                          significant(1e3 * each.predicted.gap_seconds)});
    report.results["settings"].push_back({{"devices", options.gpus},
                                          {"slots", options.slots},
                                          {"reduction", reduce},
                                          {"slice", cut},
                                          {"images_per_second", rate.median},
                                          {"predicted_images_per_second", predicted},
                                          {"difference", difference},
                                          {"gap_ms", gap.median},
                                          {"predicted_gap_ms", 1e3 * each.predicted.gap_seconds}});
    const std::string category =
        fmt::format("{}, {}, {}, {}", options.gpus, options.slots, reduce, cut);
    add_bar(plot, category, "measured", plot_point(rate));
    add_bar(plot, category, "predicted", {0, predicted, predicted, predicted});
  }
  report.results["largest_difference"] = largest;
  report.tables.push_back(std::move(table));
  report.plots.push_back(std::move(plot));
}

}  // namespace

Report bench_predict(const PredictOptions& options) {
  check_prediction(options);
  const BatchShape shape{.rows = options.rows, .height = options.size, .width = options.size};
  TrainingWork work;
  work.rows = options.rows;
  work.row_bytes = static_cast<double>(BatchLayout(shape).device_bytes()) / options.rows;
  work.step_seconds = 1e-3 * options.step_ms;
  work.parts = even_parts(static_cast<int64_t>(options.grad_mib * kMiB / sizeof(float)),
                          static_cast<int64_t>(options.bucket_mib * kMiB));
  std::vector<Compared> all = predicted_settings(options);
  for (Compared& each : all) each.predicted = predict_schedule(options.machine, work, each.options);
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    for (Compared& each : all) {
      const ThrottledResult result = run_throttled(options.machine, work, shape, each.options);
      each.rate.push_back(result.images_per_second);
      each.gap_ms.push_back(1e3 * result.gap_seconds);
    }
  }
  Report report;
  report.bench = "predict";
  report.settings = {{"batch", options.rows},
                     {"size", options.size},
                     {"step_ms", options.step_ms},
                     {"grad_mib", options.grad_mib},
                     {"bucket_mib", options.bucket_mib},
                     {"steps", options.steps},
                     {"warmup_steps", kPredictWarmupSteps},
                     {"repeats", options.repeats}};
  report.results["machine"] = to_json(options.machine);
  fill_predict_report(all, report);
  report.notes = {
      "Copies, streams, events, staging and the sum through the host's memory are real; a step's "
      "computing and the links' bandwidth are sleeps of host threads. all-reduce:nccl is a ring of "
      "copies with NCCL's algorithm, because NCCL does not run on host devices.",
      "A gap is the mean over devices and steps of a run, from the end of a step to the begin of "
      "the next."};
  return report;
}

}  // namespace stoker
