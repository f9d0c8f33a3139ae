// stoker bench scaling and convergence: training on 1 to N devices, its pace and its result.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <map>

#include "bench/suite/convergence_bench.h"
#include "bench/suite/scaling_bench.h"
#include "staging/allowed_cores.h"
#include "staging/device_list.h"
#include "tools/command/bench.h"
#include "tools/command/bench_options.h"
#include "tools/command/command.h"
#include "tools/option/feed_options.h"
#include "tools/option/train_options.h"
#include "train/model/models.h"

namespace stoker {
namespace {

const std::map<std::string, FeedKind> kScalingFeeds(std::begin(kFeedKinds), std::end(kFeedKinds));

template <class Value>
CLI::Option* add_list(CLI::App& app, const char* name, std::vector<Value>& values,
                      const std::string& what) {
  return app.add_option(name, values, what)
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace

int run_bench_scaling(int argc, char** argv) {
  ScalingOptions options;
  std::string devices = "cpu", counts, scaling = "both";
  std::vector<std::string> reductions = {"auto"}, wires = {"fp32"}, feeds = {"synthetic"};
  std::vector<int> sizes;
  std::vector<int64_t> samples;
  DataOptions data;
  options.models = {"resnet20"};
  auto app = make_parser(
      "bench scaling",
      "Trains on 1 to N devices, and prints images/s, speed-up and efficiency over one device for\n"
      "each model, image size, data set's size, feed and strategy (independent and none sum\n"
      "nothing), and how long a run warms up. Weak scaling keeps the batch of each device, strong\n"
      "scaling that of all together. Host devices are replicas with one thread each.",
      "  stoker bench scaling --n 1,2 --reduce auto,parameter-server,independent,none\n"
      "  stoker bench scaling --models resnet20,resnet32,resnet44,resnet56,resnet110 --scaling "
      "weak\n"
      "  stoker bench scaling --models resnet20 --sizes 16,32,64 --n 1,2\n"
      "  stoker bench scaling --models resnet20 --samples 64,256,1024 --feed resident,real --n "
      "1,2\n"
      "  stoker bench scaling --devices cuda --models resnet50 --batch 256 --n 1,2,4,8\n");
  app->add_option("--devices", devices, "Kind of the devices")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  app->add_option("--n", counts,
                  "Numbers of devices, as 1,2,4 or 1..8 (default: 1,2,4 and so on up to all)");
  add_list(*app, "--models", options.models, "Models to train");
  add_list(*app, "--sizes", sizes,
           "Widths and heights of the samples, pixels, as a list: each with each model (default: "
           "those of the models' recipes)")
      ->check(CLI::Range(1, 1 << 14))
      ->default_str("");
  add_list(*app, "--samples", samples,
           "Sizes of the data set, as a list. Whole epochs are timed, without the first (default: "
           "the time of a step alone)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->default_str("");
  add_list(
      *app, "--feed", feeds,
      "Sources of the batches, as a list. synthetic repeats the first batches; resident stages the "
      "first epoch on each device and replays it; real decodes and stages every batch")
      ->check(CLI::IsMember(&kScalingFeeds));
  app->add_option("--data", data.data,
                  "The data of --feed resident and real: a folder, shards or a list (default: "
                  "drawn pictures, which are not decoded)");
  app->add_option("--workers", options.workers, "Threads that decode for --feed resident and real")
      ->check(CLI::Range(0, 1024));
  check_reduce(add_list(*app, "--reduce", reductions,
                        "Strategies to compare, as a list; independent and none exchange nothing, "
                        "and are the bound of the others"));
  check_grad_wire(add_list(*app, "--grad-wire", wires,
                           "Number formats in which gradients travel, as a list: each with each "
                           "strategy that sends gradients"));
  app->add_option("--scaling", scaling,
                  "Batch that stays as devices are added: each device's (weak), that of all "
                  "(strong), or both in turn")
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
  for (const std::string& name : wires) options.wires.push_back(parse_grad_wire(name));
  options.feeds.clear();
  for (const std::string& name : feeds) options.feeds.push_back(kScalingFeeds.at(name));
  if (options.feeds == std::vector{FeedKind::synthetic}) {
    refuse_if_given(*app, {"--data", "--workers"}, "it is for --feed resident and real");
  }
  if (!sizes.empty()) options.sizes = sizes;
  if (!samples.empty()) options.samples = samples;
  std::unique_ptr<Source> source;
  if (!data.data.empty()) source = open_data(data, Split::train);
  options.data = source.get();
  if (counts.empty()) {
    counts = doubling_counts(options.on_gpus
                                 ? std::max<int>(1, static_cast<int>(query_cuda().devices.size()))
                                 : usable_cores());
  }
  options.counts = parse_counts(counts, "--n");
  output.begin("stoker bench scaling", argc, argv);
  return output.finish(bench_scaling(options));
}

int run_bench_convergence(int argc, char** argv) {
  ConvergenceOptions options;
  std::string devices = "cpu", counts = "1,2";
  DataOptions data;
  auto app = make_parser(
      "bench convergence",
      "Trains a model with several seeds on one device, on N devices with the same global batch, "
      "and\n"
      "on N devices with N times the batch, with and without warm-up. Prints top-1 errors and "
      "losses\n"
      "over the seeds, and in how many of them the weights have the bits of one device.",
      "  stoker bench convergence --data data/cifar-10-batches-bin --model resnet20 --epochs 5\n"
      "  stoker bench convergence --n 1,2,4 --batch 128 --seeds 5 --epochs 1\n");
  app->add_option("--devices", devices, "Kind of the devices")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  app->add_option("--n", counts, "Numbers of devices, as 1,2,4 or 1..4, ascending from 1");
  app->add_option("--model", options.model, "Model to train")->check(CLI::IsMember(list_models()));
  app->add_option("--data", data.data,
                  "The data, which need a test part: a folder or shards (default: drawn pictures)");
  app->add_option("--batch", options.batch,
                  "Global batch of the runs with the same batch (default: the recipe's)")
      ->check(CLI::Range(1, 1 << 20))
      ->default_str("");
  app->add_option("--epochs", options.epochs, "Epochs of a run (default: the recipe's)")
      ->check(CLI::PositiveNumber)
      ->default_str("");
  app->add_option("--warmup-epochs", options.warmup_epochs,
                  "Epochs of warm-up where N times the batch warms up. 0 leaves these runs out")
      ->check(CLI::Range(0.0, 1e6));
  app->add_option("--limit-train", options.limit_train,
                  "Train on about this many samples, spread evenly. 0 takes all")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  app->add_option("--limit-eval", options.limit_test,
                  "Evaluate about this many samples, spread evenly. 0 takes all")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  app->add_option("--workers", options.workers, "Threads that decode")->check(CLI::Range(0, 1024));
  app->add_option("--seeds", options.seeds, "Number of seeds, from 0")->check(CLI::Range(1, 1000));
  BenchOutput output(*app);
  if (const auto code = parse_options(*app, argc, argv)) return *code;

  options.on_gpus = devices == "cuda";
  options.counts = parse_counts(counts, "--n");
  std::unique_ptr<Source> train, test;
  if (!data.data.empty()) {
    train = open_data(data, Split::train);
    std::string problem;
    test = open_test_part(data, data.data, problem);
    if (!test) throw std::invalid_argument("--data: " + problem);
  }
  options.train = train.get();
  options.test = test.get();
  output.begin("stoker bench convergence", argc, argv);
  return output.finish(bench_convergence(options));
}

}  // namespace stoker
