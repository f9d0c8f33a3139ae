#include "bench/suite/emulate_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "staging/error_text.h"
#include "staging/threads.h"

namespace stoker {
namespace {

constexpr int64_t kEmulatedWarmupSteps = 2;

LoaderOptions emulated_loader_options(const EmulateOptions& options) {
  LoaderOptions loader;
  loader.batch_size = options.accelerator.batch;
  loader.epochs = -1;
  loader.feed.workers = options.workers;
  loader.feed.io_threads = options.io_threads;
  loader.ring_depth = options.ring_depth;
  loader.feed.decode = options.decode;
  return loader;
}

// A run of several accelerators, with the Loader that they share.
class Emulation {
 public:
  Emulation(const Source& source, const EmulateOptions& options, int count, int64_t steps)
      : step_seconds_(options.accelerator.step_seconds),
        steps_(steps),
        runs_(count),
        ends_{std::vector<StepEnd>(count), std::vector<StepEnd>(count)},
        all_(count) {
    std::vector<Device*> devices;
    for (int i = 0; i < count; ++i) {
      devices_.push_back(make_host_device(i));
      devices.push_back(devices_.back().get());
    }
    loader_ = std::make_unique<Loader>(source, options.augment, devices,
                                       emulated_loader_options(options));
  }

  std::vector<Utilisation> run() {
    run_threads("accelerators", std::ssize(runs_),
                [this](int64_t i) { run_one(static_cast<int>(i)); });
    error_.rethrow();
    std::vector<Utilisation> used;
    for (const auto& run : runs_) used.push_back(utilisation(run, step_seconds_));
    return used;
  }

 private:
  void run_one(int index) {
    try {
      const auto stream = devices_[index]->make_stream();
      DeviceBatch batch;
      const auto next = [&] {
        // An accelerator holds its batch until the step is over.
        batch = {};
        batch = loader_->next(index, *stream);
        if (batch) batch.synchronize();
        return static_cast<bool>(batch);
      };
      // Two lists alternate, so that no thread overwrites a list that others still read.
      int64_t meetings = 0;
      const auto meet = [&](StepEnd end) {
        std::vector<StepEnd>& ends = ends_[meetings++ % 2];
        ends[index] = end;
        all_.arrive_and_wait();
        return end_of_all(ends);
      };
      runs_[index] = run_accelerator(step_seconds_, steps_, next, meet);
    } catch (...) {
      error_.keep_current();
      loader_->stop();
    }
    // From now on the other threads do not wait for this one.
    all_.arrive_and_drop();
  }

  const double step_seconds_;
  const int64_t steps_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::unique_ptr<Loader> loader_;
  std::vector<std::vector<StepTimes>> runs_;  // each is written by its own thread
  std::array<std::vector<StepEnd>, 2> ends_;  // of a step; each is written by its own thread
  std::barrier<> all_;
  FirstError error_;
};

struct Mean {
  double share = 0, fed = 0, rate = 0, waiting = 0, others = 0, late = 0;
};

Mean mean_of(const std::vector<Utilisation>& all, int batch) {
  Mean mean;
  for (const Utilisation& one : all) {
    mean.share += one.share / static_cast<double>(all.size());
    // The rate is the sum over all accelerators.
    mean.rate += one.images_per_second(batch);
    mean.fed += one.fed_share() / static_cast<double>(all.size());
    const double whole = one.running_seconds * static_cast<double>(all.size());
    mean.waiting += one.waiting_seconds / whole;
    mean.others += one.others_seconds / whole;
    mean.late += one.late_seconds / whole;
  }
  return mean;
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

void check_emulation(const EmulateOptions& options) {
  if (options.counts.empty() || options.counts.front() < 1 || options.repeats < 1 ||
      options.steps < 2) {
    throw std::invalid_argument(fmt::format(
        "bench emulate: {} accelerators first, {} repeats of {} steps: at least 1, 1 and 2 are "
        "needed",
        options.counts.empty() ? 0 : options.counts.front(), options.repeats, options.steps));
  }
}

// The measurements with `count` accelerators; one value per repeat.
struct Fed {
  int count = 0;
  std::vector<double> percent, fed_percent, rate, waiting_percent, others_percent, late_percent;
};

Fed measure_devices(const Source& source, const EmulateOptions& options, int count) {
  Fed fed{count, {}, {}, {}, {}, {}, {}};
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    const Mean mean =
        mean_of(emulate(source, options, count, options.steps), options.accelerator.batch);
    fed.percent.push_back(100 * mean.share);
    fed.rate.push_back(mean.rate);
    fed.fed_percent.push_back(100 * mean.fed);
    fed.waiting_percent.push_back(100 * mean.waiting);
    fed.others_percent.push_back(100 * mean.others);
    fed.late_percent.push_back(100 * mean.late);
  }
  return fed;
}

Table emulated_table(const std::vector<Fed>& all, const AcceleratorSpec& spec) {
  Table table{
      fmt::format("Emulated {}: {:.0f} images/s each, a step of {} samples every {:.3f} s ({})",
                  spec.name, spec.images_per_second(), spec.batch, spec.step_seconds, spec.source),
      {"accelerators", "AU %", "waiting for batches %", "for others %", "woken late %",
       "AU %, median", "images/s", "asked for"},
      {}};
  for (const Fed& fed : all) {
    table.rows.push_back({std::to_string(fed.count), fmt::format("{:.1f}", mean_of(fed.percent)),
                          fmt::format("{:.1f}", mean_of(fed.waiting_percent)),
                          fmt::format("{:.1f}", mean_of(fed.others_percent)),
                          fmt::format("{:.1f}", mean_of(fed.late_percent)),
                          with_interval(summarise(fed.percent)),
                          with_interval(summarise(fed.rate), 4),
                          fmt::format("{:.0f}", fed.count * spec.images_per_second())});
  }
  return table;
}

Plot emulated_plot(const std::vector<Fed>& all, double at_least) {
  PlotSeries measured{"accelerator utilisation", {}},
      pass{fmt::format("MLPerf Storage passes at {:.0f} %", 100 * at_least), {}, true};
  for (const Fed& fed : all) {
    const Summary summary = summarise(fed.percent);
    const auto x = static_cast<double>(fed.count);
    measured.points.push_back({x, summary.median, summary.interval.low, summary.interval.high});
    pass.points.push_back({x, 100 * at_least, 0, 0});
  }
  return {"emulate", "How busy emulated accelerators are kept", "accelerators",
          "AU %",    {std::move(measured), std::move(pass)},    {}};
}

}  // namespace

std::vector<Utilisation> emulate(const Source& source, const EmulateOptions& options, int count,
                                 int64_t steps) {
  return Emulation(source, options, count, steps).run();
}

Report bench_emulate(const Source& source, const EmulateOptions& options) {
  check_emulation(options);
  const AcceleratorSpec& spec = options.accelerator;
  emulate(source, options, options.counts.front(), kEmulatedWarmupSteps);
  std::vector<Fed> all;
  int passed = 0, at_99 = 0;
  for (const int count : options.counts) {
    all.push_back(measure_devices(source, options, count));
    const double share = mean_of(all.back().fed_percent) / 100;
    if (share >= spec.pass) passed = count;
    if (share >= kFullUtilisation) at_99 = count;
    // More accelerators are not fed better.
    if (share < spec.pass) break;
  }
  Report report;
  report.bench = "emulate";
  report.settings = {{"accelerator", spec.name},
                     {"step_seconds", spec.step_seconds},
                     {"batch", spec.batch},
                     {"augment", options.augment.describe()},
                     {"pixels", to_string(options.decode.pixels)},
                     {"workers", options.workers},
                     {"io_threads", options.io_threads},
                     {"ring_depth", options.ring_depth},
                     {"steps", options.steps},
                     {"repeats", options.repeats},
                     {"samples", source.size()}};
  for (const Fed& fed : all) {
    report.add({fmt::format("AU, {} accelerators", fed.count), "%", Better::higher, fed.percent});
    report.add({fmt::format("waiting for batches, {} accelerators", fed.count), "%", Better::lower,
                fed.waiting_percent});
    report.add({fmt::format("waiting for others, {} accelerators", fed.count), "%", Better::lower,
                fed.others_percent});
    report.add({fmt::format("woken late, {} accelerators", fed.count), "%", Better::lower,
                fed.late_percent});
    report.add(
        {fmt::format("rate, {} accelerators", fed.count), "images/s", Better::higher, fed.rate});
  }
  report.results = {{"accelerator", spec.name},
                    {"images_per_second_each", spec.images_per_second()},
                    {fmt::format("fed_at_{:.0f}", 100 * spec.pass), passed},
                    {"fed_at_99", at_99},
                    {"measured_to", all.back().count}};
  report.tables.push_back(emulated_table(all, spec));
  report.plots.push_back(emulated_plot(all, spec.pass));
  report.notes = {
      fmt::format("Fed at {:.0f} % and more: {} {}; at 99 % and more: {}. Measured up to {}.",
                  100 * spec.pass, passed, spec.name, at_99, all.back().count),
      "AU = computing time / running time, the first step left out (MLPerf Storage's rules: "
      "tools/emulate/accelerator.h). AU, waiting for batches, waiting for others whose batches "
      "came later, and \"woken late\" are means over accelerators and repeats, and are 100 % "
      "together.",
      "A thread that the machine wakes late makes up for it in its next step. What a step cannot "
      "make up for is \"woken late\": the machine's doing, in AU but not in the counts of the line "
      "above.",
      "Batches end in the host's memory, as in MLPerf Storage; files that fit into the page cache "
      "are read from there."};
  return report;
}

}  // namespace stoker
