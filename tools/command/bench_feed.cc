// stoker bench feed: the feeder alone.
#include <CLI/CLI.hpp>

#include "bench/suite/feed_bench.h"
#include "staging/allowed_cores.h"
#include "tools/command/bench.h"
#include "tools/command/bench_data.h"
#include "tools/command/bench_output.h"
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
  output.finish(std::move(report));
  return kExitOk;
}

}  // namespace stoker
