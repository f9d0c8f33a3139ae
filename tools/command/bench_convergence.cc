// stoker bench convergence: serial beside parallel training, over seeds.
#include <CLI/CLI.hpp>

#include "bench/suite/convergence_bench.h"
#include "tools/command/bench.h"
#include "tools/command/bench_output.h"
#include "tools/command/command.h"
#include "tools/option/feed_options.h"
#include "train/model/models.h"

namespace stoker {

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
  output.finish(bench_convergence(options));
  return kExitOk;
}

}  // namespace stoker
