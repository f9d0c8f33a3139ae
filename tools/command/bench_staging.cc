// stoker bench depth, layout and slice: what happens to a batch between the ring and the step.
#include "bench/suite/depth_bench.h"
#include "bench/suite/layout_bench.h"
#include "bench/suite/slice_bench.h"
#include "tools/command/bench.h"
#include "tools/command/bench_output.h"
#include "tools/command/command.h"

namespace stoker {
namespace {

// Adds --device, --rows and --size.
void add_batch_options(CLI::App& app, std::string& device, int& rows, int& size) {
  app.add_option("--device", device, "The device to measure: cpu:0, cuda:0, ...");
  app.add_option("--batch", rows, "Samples of a batch")->check(CLI::Range(1, 1 << 20));
  app.add_option("--size", size, "Width and height of a sample, pixels")
      ->check(CLI::Range(1, 1 << 14));
}

}  // namespace

int run_bench_depth(int argc, char** argv) {
  DepthOptions options;
  auto app = make_parser(
      "bench depth",
      "Measures what 0 to 3 staging slots bring: the idle gap between two steps on the device,\n"
      "images/s, and what a batch costs the host. Steps are a model's, or emulated ones of a "
      "given\n"
      "length.",
      "  stoker bench depth --device cuda:0 --batch 2048 --size 32 --model airnet\n"
      "  stoker bench depth --batch 256 --size 224 --step-ms 30\n");
  add_batch_options(*app, options.device, options.rows, options.size);
  app->add_option("--model", options.model,
                  "Model whose training steps are taken (default: emulated steps)");
  app->add_option("--step-ms", options.step_ms, "Length of an emulated step, ms")
      ->check(CLI::Range(0.0, 10'000.0));
  app->add_option("--steps", options.steps, "Steps of one repeat, after a few that do not count")
      ->check(CLI::Range(1, 100'000));
  add_repeats_option(*app, options.repeats, "every number of slots, in turn");
  BenchOutput output(*app);
  if (const auto code = parse_options(*app, argc, argv)) return *code;
  output.begin("stoker bench depth", argc, argv);
  output.finish(bench_depth(options));
  return kExitOk;
}

int run_bench_layout(int argc, char** argv) {
  LayoutOptions options;
  auto app = make_parser(
      "bench layout",
      "Measures the kernel that turns a batch's bytes into a net's input, for each type,\n"
      "order (NHWC, NCHW) and padding of the channels, in milliseconds and GB/s.",
      "  stoker bench layout --device cuda:0 --batch 256 --size 224\n");
  add_batch_options(*app, options.device, options.rows, options.size);
  add_repeats_option(*app, options.repeats, "every kernel, after a few that do not count");
  BenchOutput output(*app);
  if (const auto code = parse_options(*app, argc, argv)) return *code;
  output.begin("stoker bench layout", argc, argv);
  output.finish(bench_layout(options));
  return kExitOk;
}

int run_bench_slice(int argc, char** argv) {
  SliceOptions options;
  auto app = make_parser(
      "bench slice",
      "Measures where to slice a batch for several replicas on one device: on the host,\n"
      "so that only a replica's own samples cross the bus, or on the device. Prints bytes\n"
      "and milliseconds.",
      "  stoker bench slice --device cuda:0 --replicas 4 --batch 1024 --size 224\n");
  add_batch_options(*app, options.device, options.rows, options.size);
  app->add_option("--replicas", options.replicas, "Number of replicas that share the batch")
      ->check(CLI::Range(1, 64));
  add_repeats_option(*app, options.repeats, "both ways, in turn, after a few that do not count");
  BenchOutput output(*app);
  if (const auto code = parse_options(*app, argc, argv)) return *code;
  output.begin("stoker bench slice", argc, argv);
  output.finish(bench_slice(options));
  return kExitOk;
}

}  // namespace stoker
