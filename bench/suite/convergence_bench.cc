#include "bench/suite/convergence_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "pipeline/source/subset_source.h"
#include "pipeline/source/synthetic_source.h"
#include "train/trainer.h"

namespace stoker {
namespace {

constexpr int kDrawnTrain = 2048, kDrawnTest = 512;
constexpr int kConvergenceClasses = 10;

// One way to train, with a value per seed.
struct TrainedVariant {
  int devices = 1;
  int times = 1;              // the batch, times the one that all have
  double warmup_epochs = -1;  // -1: the recipe's
  std::vector<double> error{}, loss{};
  std::vector<uint64_t> weights{};  // a hash of their bits
};

class Silent final : public TrainObserver {};

// The samples: the user's, or drawn ones, of which the last are for the test.
class ConvergenceData {
 public:
  explicit ConvergenceData(const ConvergenceOptions& options, Size size) {
    if (options.train == nullptr) {
      drawn_ = make_synthetic_source(kDrawnTrain + kDrawnTest, size, kConvergenceClasses, 1);
      drawn_train_ = part(0, kDrawnTrain);
      drawn_test_ = part(kDrawnTrain, kDrawnTrain + kDrawnTest);
    }
    const Source& train = options.train ? *options.train : *drawn_train_;
    const Source& test = options.train ? *options.test : *drawn_test_;
    train_ = std::make_unique<SubsetSource>(train, options.limit_train);
    test_ = std::make_unique<SubsetSource>(test, options.limit_test);
  }
  const Source& train() const { return *train_; }
  const Source& test() const { return *test_; }
  bool drawn() const { return drawn_ != nullptr; }

 private:
  std::unique_ptr<Source> part(SampleId begin, SampleId end) const {
    std::vector<SampleId> ids;
    for (SampleId id = begin; id < end; ++id) ids.push_back(id);
    return std::make_unique<SubsetSource>(*drawn_, ids);
  }

  std::unique_ptr<Source> drawn_, drawn_train_, drawn_test_, train_, test_;
};

// Returns the recipe of all runs with the same batch.
Recipe recipe_of(const ConvergenceOptions& options) {
  Recipe recipe = default_recipe(options.model);
  if (options.batch > 0) recipe.batch = options.batch;
  if (options.epochs > 0) recipe.set_epochs(options.epochs);
  const int most = options.counts.back(), rows = recipe.batch / most;
  if (rows < 1 || recipe.batch % most != 0) {
    throw std::invalid_argument(fmt::format(
        "bench convergence: a batch of {} cannot be cut into {} equal parts", recipe.batch, most));
  }
  // Batch norm sees the same samples together on any number of devices.
  int micro_batch = std::min(recipe.micro_batch_size, rows);
  while (rows % micro_batch != 0) --micro_batch;
  recipe.micro_batch_size = micro_batch;
  return recipe;
}

void check_convergence(const ConvergenceOptions& options) {
  if (options.counts.empty() || options.counts.front() != 1 ||
      !std::is_sorted(options.counts.begin(), options.counts.end()) || options.seeds < 1 ||
      options.batch < 0 || options.epochs < 0 || options.warmup_epochs < 0 || options.workers < 0 ||
      (options.train == nullptr) != (options.test == nullptr)) {
    throw std::invalid_argument(
        fmt::format("bench convergence: {} numbers of devices (ascending, from 1), {} seeds, a "
                    "batch of {}, {} epochs, {} of warm-up, {} workers",
                    options.counts.size(), options.seeds, options.batch, options.epochs,
                    options.warmup_epochs, options.workers));
  }
}

std::vector<TrainedVariant> variants_of(const ConvergenceOptions& options, const Recipe& recipe) {
  std::vector<TrainedVariant> all;
  for (const int count : options.counts) all.push_back({.devices = count});
  // A triangle is a warm-up of its own.
  const bool warms_up = recipe.schedule.kind != ScheduleKind::triangle && options.warmup_epochs > 0;
  for (const int count : options.counts) {
    if (count == 1) continue;
    all.push_back({.devices = count, .times = count, .warmup_epochs = 0});
    if (warms_up) {
      all.push_back({.devices = count, .times = count, .warmup_epochs = options.warmup_epochs});
    }
  }
  return all;
}

void train(const ConvergenceOptions& options, const Recipe& recipe, const ConvergenceData& data,
           uint64_t seed, TrainedVariant& variant) {
  TrainOptions train;
  train.recipe = recipe;
  train.recipe.batch *= variant.times;
  if (variant.warmup_epochs >= 0) {
    train.recipe.schedule.warmup_epochs = variant.warmup_epochs;
    train.recipe.schedule.warmup_steps = 0;
  }
  for (int i = 0; i < variant.devices; ++i) {
    train.devices.push_back(fmt::format("{}:{}", options.on_gpus ? "cuda" : "cpu", i));
  }
  train.seed = seed;
  train.feed.workers = options.workers;
  train.eval_every_epochs = 0;
  train.receipt = false;
  Silent silent;
  Trainer trainer(data.train(), &data.test(), train, silent);
  const TrainResult result = trainer.run();
  variant.error.push_back(100 * (1 - result.eval_plain->top1));
  variant.loss.push_back(result.eval_plain->loss);
  variant.weights.push_back(trainer.weights_hash());
}

std::string epochs_text(double epochs) {
  return fmt::format("{:g} epoch{}", epochs, epochs == 1 ? "" : "s");
}

std::string warm_up_name(const TrainedVariant& variant, const Recipe& recipe) {
  if (recipe.schedule.kind == ScheduleKind::triangle) return "the schedule's";
  const double epochs =
      variant.warmup_epochs >= 0 ? variant.warmup_epochs : recipe.schedule.warmup_epochs;
  return epochs > 0 ? epochs_text(epochs) : "none";
}

// In how many seeds the weights have the bits of one device.
int same_weights(const TrainedVariant& variant, const TrainedVariant& one) {
  int count = 0;
  for (size_t i = 0; i < one.weights.size(); ++i) count += variant.weights[i] == one.weights[i];
  return count;
}

void fill_convergence_report(std::vector<TrainedVariant>& all, const Recipe& recipe,
                             Report& report) {
  Table table{recipe.name + ", " + epochs_text(recipe.epochs),
              {"devices", "batch", "warm-up", "top-1 error %", "loss", "weights of one device"},
              {}};
  Plot plot{"convergence",
            "Serial beside parallel training",
            "devices x batch of each, warm-up",
            "top-1 error %",
            {},
            {}};
  const auto seeds = all.front().weights.size();
  for (const TrainedVariant& variant : all) {
    const int batch = recipe.batch * variant.times;
    const std::string warm_up = warm_up_name(variant, recipe);
    const std::string name =
        fmt::format("{} devices, batch {}, warm-up {}", variant.devices, batch, warm_up);
    const Summary error = report.add({"top-1 error, " + name, "%", Better::lower, variant.error});
    const Summary loss = report.add({"loss, " + name, "", Better::lower, variant.loss});
    const int same = same_weights(variant, all.front());
    table.rows.push_back({std::to_string(variant.devices), std::to_string(batch), warm_up,
                          with_interval(error), with_interval(loss),
                          fmt::format("in {} of {} seeds", same, seeds)});
    report.results["runs"].push_back({{"devices", variant.devices},
                                      {"batch", batch},
                                      {"warmup", warm_up},
                                      {"top1_error", error.median},
                                      {"loss", loss.median},
                                      {"same_weights", same}});
    add_bar(plot, fmt::format("{} x {}, {}", variant.devices, batch / variant.devices, warm_up),
            "median over seeds", plot_point(error));
  }
  report.tables.push_back(std::move(table));
  report.plots.push_back(std::move(plot));
}

}  // namespace

Report bench_convergence(const ConvergenceOptions& options) {
  check_convergence(options);
  const Recipe recipe = recipe_of(options);
  const ConvergenceData data(options, recipe.input);
  std::vector<TrainedVariant> all = variants_of(options, recipe);
  for (int seed = 0; seed < options.seeds; ++seed) {
    for (TrainedVariant& variant : all) {
      train(options, recipe, data, static_cast<uint64_t>(seed), variant);
    }
  }
  Report report;
  report.bench = "convergence";
  report.settings = {{"devices", options.on_gpus ? "cuda" : "cpu"},
                     {"model", options.model},
                     {"batch", recipe.batch},
                     {"micro_batch", recipe.micro_batch_size},
                     {"epochs", recipe.epochs},
                     {"warmup_epochs", options.warmup_epochs},
                     {"train_samples", data.train().size()},
                     {"test_samples", data.test().size()},
                     {"drawn", data.drawn()},
                     {"seeds", options.seeds}};
  report.results = {{"model", options.model}, {"batch", recipe.batch}, {"epochs", recipe.epochs}};
  fill_convergence_report(all, recipe, report);
  report.notes = {
      "Each seed has its own first weights, order of samples and augmentation, the same on any "
      "number of devices. Errors are of the test samples in one view; medians and intervals are "
      "over seeds.",
      "With N times the batch the learning rate is scaled as the recipe says, and there are N "
      "times fewer steps."};
  if (data.drawn()) {
    report.notes.push_back("The pictures are drawn: errors on real data are others (--data).");
  }
  return report;
}

}  // namespace stoker
