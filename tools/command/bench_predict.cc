// stoker bench predict: what stoker plan predicts, beside host devices with throttled links.
#include <CLI/CLI.hpp>
#include <numeric>

#include "bench/suite/predict_bench.h"
#include "tools/command/bench.h"
#include "tools/command/bench_output.h"
#include "tools/command/command.h"
#include "tools/command/machine_option.h"

namespace stoker {

int run_bench_predict(int argc, char** argv) {
  PredictOptions options;
  std::string machine = "2xthrottled", counts;
  auto app = make_parser(
      "bench predict",
      "Checks the predictions of stoker plan --machine: runs steps on host devices whose copies\n"
      "take the time that the machine's links would take, and prints images/s and gaps between\n"
      "steps beside the predicted ones: over devices, with 0 to 3 staging slots, and with the "
      "whole\n"
      "batch on each device. Computing is a sleep. The links must be slow enough for this machine\n"
      "to copy as much.",
      "  stoker bench predict\n"
      "  stoker bench predict --machine mine.json --n 1,2,4 --batch 64 --size 128 --step-ms 40\n");
  app->add_option("--machine", machine, "The machine: " + preset_names() + ", or a JSON file");
  app->add_option("--n", counts,
                  "Numbers of devices, as 1,2,4 or 1..8, ascending (default: 1 to all)");
  app->add_option("--batch", options.rows, "Samples of a device's batch")
      ->check(CLI::Range(1, 1 << 20));
  app->add_option("--size", options.size, "Width and height of a sample, pixels")
      ->check(CLI::Range(1, 1 << 14));
  app->add_option("--step-ms", options.step_ms, "Length of a step's computing, ms")
      ->check(CLI::Range(0.1, 10'000.0));
  app->add_option("--grad-mib", options.grad_mib, "Gradients, MiB of fp32")
      ->check(CLI::Range(0.001, 1e4));
  app->add_option("--bucket-mib", options.bucket_mib,
                  "Size in MiB of the buckets in which gradients are summed. 0 sums all of them "
                  "after the backward pass")
      ->check(CLI::Range(0.0, 1e4));
  app->add_option("--steps", options.steps, "Steps of one repeat, after a few that do not count")
      ->check(CLI::Range(1, 100'000));
  add_repeats_option(*app, options.repeats, "every setting, in turn");
  BenchOutput output(*app);
  if (const auto code = parse_options(*app, argc, argv)) return *code;

  options.machine = machine_option(machine);
  if (counts.empty()) {
    options.counts.resize(options.machine.gpus.size());
    std::iota(options.counts.begin(), options.counts.end(), 1);
  } else {
    options.counts = parse_counts(counts, "--n");
  }
  output.begin("stoker bench predict", argc, argv);
  output.finish(bench_predict(options));
  return kExitOk;
}

}  // namespace stoker
