// stoker bench links, depth, layout, slice and predict: what happens to a batch and a gradient on
// the way between memory, devices and the step.
#include <CLI/CLI.hpp>
#include <numeric>
#include <regex>

#include "bench/suite/depth_bench.h"
#include "bench/suite/layout_bench.h"
#include "bench/suite/links_bench.h"
#include "bench/suite/predict_bench.h"
#include "bench/suite/slice_bench.h"
#include "tools/command/bench.h"
#include "tools/command/bench_options.h"
#include "tools/command/command.h"
#include "tools/machine/numa_nodes.h"
#include "train/run/replica.h"

namespace stoker {
namespace {

// Lists NUMA nodes and GPUs with their links, as reported by the system and NVML.
Table topology(const nlohmann::ordered_json& machine) {
  Table table{"Topology", {"what", "NUMA node", "is"}, {}};
  for (const NumaNode& node : numa_nodes()) {
    table.rows.push_back(
        {"memory", std::to_string(node.id), std::to_string(node.cpus.size()) + " CPUs beside it"});
  }
  for (const auto& gpu : machine["gpus"]) {
    const int node = gpu["numa_node"];
    table.rows.push_back(
        {gpu["name"], node < 0 ? "unknown" : std::to_string(node),
         gpu["model"].get<std::string>() + ", " + gpu["links"].get<std::string>()});
  }
  return table;
}

}  // namespace

int run_bench_links(int argc, char** argv) {
  LinksOptions options;
  std::string devices = "cpu:1";
  int mib = 64;
  auto app = make_parser(
      "bench links",
      "Measures bandwidth: of the host's memory by NUMA node, from and to each device with pinned\n"
      "and pageable memory, inside each device, and between devices. Calculates from it what a\n"
      "batch and a model's gradient cost.",
      "  stoker bench links\n"
      "  stoker bench links --devices cuda:all --models resnet50,resnet18 --batch 256 --size "
      "224\n");
  app->add_option("--devices", devices, "The devices to measure: cpu:1, cuda:all or cuda:0,1");
  app->add_option("--mib", mib, "Size of one copy, MiB")->check(CLI::Range(1, 1 << 20));
  app->add_option("--batch", options.batch, "Samples of the batch whose cost is calculated")
      ->check(CLI::Range(1, 1 << 20));
  app->add_option("--size", options.size, "Width and height of its samples, pixels")
      ->check(CLI::Range(1, 1 << 14));
  app->add_option("--models", options.models, "Models whose gradients' cost is calculated, a list")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_repeats_option(*app, options.repeats, "every copy");
  BenchOutput output(*app);
  if (const auto code = parse_options(*app, argc, argv)) return *code;

  options.devices = parse_devices(devices);
  options.bytes = int64_t{mib} << 20;
  output.begin("stoker bench links", argc, argv);
  Report report = bench_links(options);
  report.tables.insert(report.tables.begin(), topology(output.machine()));
  return output.finish(std::move(report));
}

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
  return output.finish(bench_predict(options));
}

namespace {

// Adds --batch and --size.
void add_sample_options(CLI::App& app, int& rows, int& size) {
  app.add_option("--batch", rows, "Samples of a batch")->check(CLI::Range(1, 1 << 20));
  app.add_option("--size", size, "Width and height of a sample, pixels")
      ->check(CLI::Range(1, 1 << 14));
}

std::string check_device_name(const std::string& name) {
  static const std::regex kName("(cpu|cuda):[0-9]+");
  if (std::regex_match(name, kName)) return "";
  return "'" + name + "' is no device: cpu:0 and cuda:0 are, with any number";
}

// Adds --device, which it returns, --batch and --size.
CLI::Option* add_batch_options(CLI::App& app, std::string& device, int& rows, int& size) {
  add_sample_options(app, rows, size);
  return app.add_option("--device", device, "The device to measure: cpu:0, cuda:0, ...")
      ->check(check_device_name);
}

}  // namespace

int run_bench_depth(int argc, char** argv) {
  DepthOptions options;
  std::string machine;
  auto app = make_parser(
      "bench depth",
      "Measures what 0 to 3 staging slots bring: the idle gap between two steps on the device,\n"
      "images/s, and what a batch costs the host. Steps are a model's, or emulated ones of a "
      "given\n"
      "length.",
      "  stoker bench depth --device cuda:0 --batch 2048 --size 32 --model airnet\n"
      "  stoker bench depth --machine 2xthrottled --batch 64 --size 128 --step-ms 30\n");
  CLI::Option* const device = add_batch_options(*app, options.device, options.rows, options.size);
  app->add_option("--machine", machine,
                  "Measure a host device with the links of a machine's first GPU: a preset of "
                  "stoker plan, or a JSON file")
      ->excludes(device);
  app->add_option("--model", options.model,
                  "Model whose training steps are taken (default: emulated steps)");
  app->add_option("--step-ms", options.step_ms, "Length of an emulated step, ms")
      ->check(CLI::Range(0.0, 10'000.0));
  app->add_option("--steps", options.steps, "Steps of one repeat, after a few that do not count")
      ->check(CLI::Range(1, 100'000));
  add_repeats_option(*app, options.repeats, "every number of slots, in turn");
  BenchOutput output(*app);
  if (const auto code = parse_options(*app, argc, argv)) return *code;
  if (!machine.empty()) options.machine = machine_option(machine);
  output.begin("stoker bench depth", argc, argv);
  return output.finish(bench_depth(options));
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
  return output.finish(bench_layout(options));
}

int run_bench_slice(int argc, char** argv) {
  SliceOptions options;
  std::string machine;
  auto app = make_parser(
      "bench slice",
      "Measures where to cut a batch for the replicas of one or more devices: on the host, so "
      "that\n"
      "only a replica's own samples cross the bus; on each device, which gets the whole batch; or "
      "on\n"
      "the first device, from which the others get their parts. Prints milliseconds, the bytes "
      "that\n"
      "reach each device, and the largest batch. With --machine host devices take its links' "
      "time,\n"
      "and the bytes over each link and predictions stand beside.",
      "  stoker bench slice --device cuda:0 --replicas 4 --batch 1024 --size 224\n"
      "  stoker bench slice --device cuda:0,cuda:1 --replicas 1 --memory-gib 8\n"
      "  stoker bench slice --machine 2xthrottled --replicas 1 --batch 128 --size 128\n");
  CLI::Option* const device = app->add_option("--device", options.devices,
                                              "The devices to measure, as a list: cuda:0,cuda:1")
                                  ->delimiter(',')
                                  ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
                                  ->check(check_device_name);
  app->add_option("--machine", machine,
                  "Measure host devices with the links of a machine: a preset of stoker plan, or a "
                  "JSON file")
      ->excludes(device);
  add_sample_options(*app, options.rows, options.size);
  app->add_option("--replicas", options.replicas, "Number of replicas on each device")
      ->check(CLI::Range(1, 64));
  app->add_option("--memory-gib", options.memory_gib,
                  "Memory of each device for one batch, GiB: the largest batch follows from it")
      ->check(CLI::PositiveNumber);
  add_repeats_option(*app, options.repeats, "all ways, in turn, after a few that do not count");
  BenchOutput output(*app);
  if (const auto code = parse_options(*app, argc, argv)) return *code;
  if (!machine.empty()) options.machine = machine_option(machine);
  output.begin("stoker bench slice", argc, argv);
  return output.finish(bench_slice(options));
}

}  // namespace stoker
