// stoker bench scaling: training on 1 to N devices.
#include <iterator>
#include <map>

#include "bench/suite/scaling_bench.h"
#include "staging/allowed_cores.h"
#include "staging/device_list.h"
#include "tools/command/bench.h"
#include "tools/command/bench_output.h"
#include "tools/command/command.h"
#include "tools/option/reduce_option.h"

namespace stoker {
namespace {

const std::map<std::string, GradWire> kWires(std::begin(kGradWires), std::end(kGradWires));

}  // namespace

int run_bench_scaling(int argc, char** argv) {
  ScalingOptions options;
  std::string devices = "cpu", counts, scaling = "both";
  std::vector<std::string> reductions = {"auto"}, wires = {"fp32"};
  options.models = {"resnet20"};
  auto app = make_parser(
      "bench scaling",
      "Trains on 1 to N devices with synthetic input, and prints images/s, speed-up and "
      "efficiency\n"
      "over one device for each model and each strategy (independent and none sum nothing).\n"
      "Weak scaling keeps the batch of each device, strong scaling that of all together. Host\n"
      "devices are replicas with one thread each. What input costs a run is measured by\n"
      "bench/research/feed_reduce_table.py.",
      "  stoker bench scaling --n 1,2 --reduce auto,parameter-server,independent,none\n"
      "  stoker bench scaling --models resnet20,resnet32,resnet44,resnet56,resnet110 --scaling "
      "weak\n"
      "  stoker bench scaling --devices cuda --models resnet50 --batch 256 --n 1,2,4,8\n");
  app->add_option("--devices", devices, "Kind of the devices")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  app->add_option("--n", counts,
                  "Numbers of devices, as 1,2,4 or 1..8 (default: 1,2,4 and so on up to all)");
  app->add_option("--models", options.models,
                  "Models to train, with the input sizes of their recipes")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  check_reduce(
      app->add_option("--reduce", reductions,
                      "Strategies to compare, as a list; independent and none exchange nothing, "
                      "and are the bound of the others"))
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app->add_option("--grad-wire", wires,
                  "Number formats in which gradients travel, as a list: each with each strategy "
                  "that sends gradients")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->check(CLI::IsMember(&kWires));
  app->add_option("--scaling", scaling,
                  "Batch that stays as devices are added: each device's (weak), that of all "
                  "(strong), or both "
                  "in turn")
      ->check(CLI::IsMember({"weak", "strong", "both"}));
  app->add_option("--batch", options.batch,
                  "Samples of a device (weak) or of all devices together (strong)")
      ->check(CLI::Range(1, 1 << 20));
  app->add_option("--steps", options.steps, "Steps of a run that are timed, after the warm-up")
      ->check(CLI::Range(1, 1 << 20));
  add_repeats_option(*app, options.repeats, "every run, in turn");
  BenchOutput output(*app);
  if (const auto code = parse_options(*app, argc, argv)) return *code;

  options.on_gpus = devices == "cuda";
  options.weak = scaling != "strong";
  options.strong = scaling != "weak";
  options.reductions.clear();
  for (const std::string& name : reductions) options.reductions.push_back(parse_reduce(name));
  options.wires.clear();
  for (const std::string& name : wires) options.wires.push_back(kWires.at(name));
  if (counts.empty()) {
    counts = doubling_counts(options.on_gpus
                                 ? std::max<int>(1, static_cast<int>(query_cuda().devices.size()))
                                 : usable_cores());
  }
  options.counts = parse_counts(counts, "--n");
  output.begin("stoker bench scaling", argc, argv);
  output.finish(bench_scaling(options));
  return kExitOk;
}

}  // namespace stoker
