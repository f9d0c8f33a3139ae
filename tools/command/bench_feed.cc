// stoker bench feed and emulate: the feeder alone, and how many accelerators it feeds.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>

#include "bench/suite/emulate_bench.h"
#include "bench/suite/feed_bench.h"
#include "staging/allowed_cores.h"
#include "tools/command/bench.h"
#include "tools/command/bench_options.h"
#include "tools/command/command.h"

namespace stoker {

int run_bench_feed(int argc, char** argv) {
  BenchDataOptions data;
  FeedBenchOptions options;
  std::string workers = doubling_counts(usable_cores()), batches = "64,16,256", depths = "4,1,2,8";
  auto app = make_parser(
      "bench feed",
      "Measures the feeder without a trainer: CPU milliseconds per image by stage and whole,\n"
      "images/s and efficiency over workers, batch sizes and ring depths. A list is 1,2,4 or "
      "1..8;\n"
      "its first batch size and ring depth are used where another option is varied.",
      "  stoker bench feed --data data/imagenette\n"
      "  stoker bench feed --data data/cifar-10-batches-bin --model airnet --batch 512 --workers "
      "0,1,2\n"
      "  stoker bench feed --in-memory --workers 1..4 --repeats 15 --out results\n");
  add_bench_data_options(*app, data);
  app->add_option("--workers", workers, "Threads that decode, a list; 0: the consumer decodes");
  app->add_option("--batch", batches, "Samples per batch, a list");
  app->add_option("--ring-depth", depths, "Batches that are decoded ahead, a list");
  app->add_option("--cpu-ms", options.cpu_ms, "CPU time of one measurement, ms (approximate)")
      ->check(CLI::Range(1, 60'000));
  add_repeats_option(*app, options.repeats, "every measurement, in turn");
  BenchOutput output(*app);
  if (const auto code = parse_options(*app, argc, argv)) return *code;

  options.workers = parse_counts(workers, "--workers");
  options.batches = parse_counts(batches, "--batch");
  options.ring_depths = parse_counts(depths, "--ring-depth");
  options.decode = data.data.decode();
  options.io_threads = data.data.io_threads;
  output.begin("stoker bench feed", argc, argv);
  const BenchData feed(data);
  options.augment = data.augment.spec(feed.source());
  Report report = bench_feed(feed.source(), options);
  report.settings["data"] = feed.describe();
  return output.finish(std::move(report));
}

namespace {

std::string accelerators_help() {
  std::string text = "Accelerators:\n";
  for (const AcceleratorSpec& spec : known_accelerators()) {
    text += fmt::format("  {:<14} {:4.0f} images/s, {} samples every {:.4f} s: {}\n", spec.name,
                        spec.images_per_second(), spec.batch, spec.step_seconds, spec.source);
  }
  return text;
}

}  // namespace

int run_bench_emulate(int argc, char** argv) {
  BenchDataOptions data;
  EmulateOptions options;
  std::string accelerator = "h100", counts = "1..8";
  double rate = 0;
  int batch = 0;
  options.workers = usable_cores();
  auto app = make_parser(
      "bench emulate",
      "Feeds emulated accelerators: each step is a sleep as long as a real one was measured to\n"
      "take. Prints the accelerator utilisation by the rules of MLPerf Storage (computing time /\n"
      "running time, the first step left out), and how many accelerators are kept 90 % "
      "(RetinaNet:\n"
      "85 %) and 99 % busy. Ends at the first number that is not fed. Needs no GPU.",
      "  stoker bench emulate --accel h100 --n 1..8 --data data/imagenette\n"
      "  stoker bench emulate --rate 3000 --batch 256 --n 1,2,4,8 --size 176 --out results\n\n" +
          accelerators_help());
  app->add_option("--accel", accelerator, "The accelerator to emulate; they are listed below");
  app->add_option("--rate", rate,
                  "Images/s of an accelerator to emulate instead of --accel; 0: none")
      ->check(CLI::NonNegativeNumber);
  app->add_option("--batch", batch, "Samples of a step, at the same images/s; 0: 400")
      ->check(CLI::Range(0, 1 << 20));
  app->add_option("--n", counts, "How many accelerators, ascending: a list like 1,2,4 or 1..8");
  add_bench_data_options(*app, data);
  app->add_option("--workers", options.workers, "Threads that decode; 0: the consumers decode")
      ->check(CLI::Range(0, 1024));
  app->add_option("--ring-depth", options.ring_depth,
                  "Batches that are decoded ahead, per accelerator")
      ->check(CLI::Range(1, 1024));
  app->add_option("--steps", options.steps, "Steps of one run; the first one is left out")
      ->check(CLI::Range(2, 1 << 24));
  add_repeats_option(*app, options.repeats, "every run (MLPerf Storage: 5)");
  BenchOutput output(*app);
  if (const auto code = parse_options(*app, argc, argv)) return *code;

  try {
    options.accelerator = find_accelerator(accelerator);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(std::string("--accel: ") + error.what());
  }
  if (rate > 0 || batch > 0) {
    const AcceleratorSpec& named = options.accelerator;
    AcceleratorSpec chosen = accelerator_of_rate(rate > 0 ? rate : named.images_per_second(),
                                                 batch > 0 ? batch : named.batch);
    if (rate == 0) chosen.name = named.name, chosen.source = named.source + ", other samples";
    options.accelerator = chosen;
  }
  options.counts = parse_counts(counts, "--n");
  if (options.counts.front() < 1) throw std::invalid_argument("--n: " + counts + " is below 1");
  if (!std::is_sorted(options.counts.begin(), options.counts.end(), std::less_equal<>())) {
    throw std::invalid_argument("--n: " + counts + " is not ascending");
  }
  options.decode = data.data.decode();
  options.io_threads = data.data.io_threads;
  output.begin("stoker bench emulate", argc, argv);
  const BenchData feed(data);
  options.augment = data.augment.spec(feed.source());
  Report report = bench_emulate(feed.source(), options);
  report.settings["data"] = feed.describe();
  return output.finish(std::move(report));
}

}  // namespace stoker
