// stoker train: trains a model and shows the progress. It can be interrupted and resumed.

#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

#include "pipeline/store/object_store.h"
#include "tools/command/command.h"
#include "tools/command/run_folder.h"
#include "tools/command/train_display.h"
#include "tools/console/interrupt.h"
#include "tools/console/processes.h"
#include "tools/console/progress.h"
#include "tools/machine/load.h"
#include "tools/option/augment_choice.h"
#include "tools/option/feed_options.h"
#include "tools/option/train_options.h"
#include "train/checkpoint/checkpoint.h"
#include "train/run/lock.h"
#include "train/run/replica.h"

namespace stoker {
namespace {

// Opens what is evaluated, and prints notes if `say`.
ChosenSamples open_eval(const TrainArguments& arguments, bool say) {
  std::vector<std::string> notes;
  ChosenSamples samples = arguments.open_eval_samples(notes);
  for (const std::string& note : notes) {
    if (say) fmt::print("note: {}\n", note);
  }
  return samples;
}

void refuse_to_mix_runs(const TrainOptions& options) {
  RunLock::require_free(options.out);
  const bool kept =
      kept_replicas(options.out) > 0 || has_checkpoints(checkpoint_folder(options.out));
  if (options.resume || !kept) return;
  throw std::invalid_argument(
      "--out: " + options.out +
      " holds checkpoints of a run: add --resume to go on with it, or choose another folder");
}

// A run goes on with the samples that it began with. (The Loader would find the difference, too,
// but knows no options.)
void refuse_other_samples(const TrainOptions& options, const SampleChoice& choice) {
  const int replica = options.reduce == ReduceKind::independent ? 0 : -1;
  if (!options.resume || newest_checkpoint(checkpoint_folder(options.out, replica)).empty()) return;
  if (!std::filesystem::exists(options.out + "/config.json")) return;
  const RunSamples before = read_run_samples(options.out);
  const auto require_same = [&](const std::string& option, const std::string& what,
                                const std::string& was, const std::string& is) {
    if (was == is) return;
    throw std::invalid_argument(
        fmt::format("{}: the run in {} has {}, and with these options it would have {}; a run is "
                    "resumed with the same {}",
                    option, options.out, was, is, what));
  };
  const auto text = [](const std::string& words, const char* none) {
    return words.empty() ? none : words;
  };
  require_same("--subset", "samples", text(before.subset, "all samples"),
               text(options.subset, "all samples"));
  constexpr const char* kShuffled = "every sample once per epoch";
  const bool blend = !choice.blend.empty() || !before.choice.blend.empty();
  const bool blocks =
      !choice.shuffle_blocks.empty() || before.order.starts_with("shuffled by blocks");
  require_same(blend    ? "--blend"
               : blocks ? "--shuffle-blocks"
                        : "--weights",
               "order", text(before.order, kShuffled),
               text(options.order ? options.order->describe() : "", kShuffled));
}

std::string resume_hint(int argc, char** argv) {
  std::string line = "stoker";
  bool resumes = false;
  for (int i = 0; i < argc; ++i) {
    const std::string word = shown_word(argv[i]);
    resumes = resumes || word == "--resume";
    const bool plain = word.find_first_of(" \t'\"\\$&;()<>|*?`") == std::string::npos;
    line += plain ? " " + word : " '" + word + "'";
  }
  return resumes ? line : line + " --resume";
}

// The models of independent replicas, of which the lines above have the means.
void print_replicas(const TrainResult& result) {
  if (const auto spread = top1_spread(result.replicas)) {
    fmt::print("{:<12} {}\n", "spread", spread_text(*spread, result.replicas.size()));
  }
  for (size_t i = 0; i < result.replicas.size(); ++i) {
    const ReplicaFigures& replica = result.replicas[i];
    fmt::print("{:<12} {}{}{}\n", fmt::format("replica {}", i), replica_text(replica),
               replica.checkpoint.empty() ? "" : "; ", replica.checkpoint);
  }
}

// `before`: the memory of the program and of the opened data.
void print_memory(const TrainResult& result, int64_t before) {
  const int64_t peak = peak_resident_bytes();
  if (before < 0 || peak < before) return;
  constexpr double kMiB = 1 << 20;
  fmt::print(
      "{:<12} {:.0f} MiB at the peak, {:.0f} MiB were expected; the program and its data have "
      "{:.0f} MiB besides\n",
      "memory", static_cast<double>(peak - before) / kMiB,
      static_cast<double>(result.expected_bytes) / kMiB, static_cast<double>(before) / kMiB);
}

void print_summary(const TrainResult& result, const TrainOptions& options, const Source& source,
                   int64_t before) {
  fmt::print("\n{:<12} {} of {} steps, {:.2f} epochs, {} of training\n", "trained", result.step,
             result.total_steps, result.epochs_done, format_duration(result.train_seconds));
  fmt::print("{:<12} loss {:.4f}, accuracy {:.2f}%\n", "last epoch", result.loss,
             100 * result.accuracy);
  if (result.eval_plain && options.recipe.eval_views > 1) {
    fmt::print("{:<12} top-1 {:.2f}%, 1 view\n", "evaluated", 100 * result.eval_plain->top1);
  }
  if (result.eval) {
    fmt::print("{:<12} top-1 {:.2f}%, top-5 {:.2f}% of {} images, {} view(s)\n", "evaluated",
               100 * result.eval->top1, 100 * result.eval->top5, result.eval->samples,
               options.recipe.eval_views);
  }
  print_replicas(result);
  fmt::print("{:<12} {:.0f} images/s ± {:.0f}\n", "speed", result.images_per_second, result.jitter);
  fmt::print("{:<12} {:.2f}% of the time the trainer waited for data\n", "feed wait",
             100 * result.feed_wait_share);
  print_memory(result, before);
  if (const auto store = source.storage().store_stats()) {
    fmt::print("{:<12} {}\n", "store", describe(*store));
    if (store->has_cache) fmt::print("{:<12} {}\n", "cache", describe_cache(*store));
  }
  if (result.cache) fmt::print("{:<12} training: {}\n", "cache", describe(*result.cache));
  if (result.eval && result.eval->cache) {
    fmt::print("{:<12} last evaluation: {}\n", "cache", describe(*result.eval->cache));
  }
  if (result.bad_samples > 0) {
    fmt::print("{:<12} {} bad samples, listed in {}/quarantine.jsonl\n", "quarantine",
               result.bad_samples, options.out);
  }
  if (!result.checkpoint.empty() && result.replicas.empty()) {
    fmt::print("{:<12} {}\n", "checkpoint", result.checkpoint);
  }
  if (!result.receipt.empty()) fmt::print("{:<12} {}\n", "receipt", result.receipt);
}

// Runs in each process of the training; only the first one prints.
int train(const TrainArguments& arguments, TrainOptions options, const Launch& launch,
          ProcessGroup* processes, int argc, char** argv) {
  const bool first = launch.rank == 0;
  options.processes = processes;
  if (first) refuse_to_mix_runs(options);
  const ChosenSamples train_data = arguments.open_train_samples();
  const ChosenSamples eval_data = open_eval(arguments, first);
  arguments.set_samples(train_data, options);
  if (first) refuse_other_samples(options, arguments.samples);
  const int64_t before = resident_bytes();
  // Fails for a port that is taken before anything else is made.
  TrainDisplay display({.watch = arguments.watch,
                        .verbose = arguments.verbose,
                        .metrics_port = first ? arguments.metrics_port : std::nullopt,
                        .model = arguments.model});
  TrainObserver nobody;
  Trainer trainer(train_data.source(), eval_data.source_or_null(), options,
                  first ? static_cast<TrainObserver&>(display) : nobody);
  int signal = 0;
  TrainResult result;
  {
    std::optional<TrainDisplay::Watching> watching;
    if (first) watching.emplace(display, trainer, options);
    const Interrupt interrupt([](void* context) { static_cast<Trainer*>(context)->request_stop(); },
                              &trainer,
                              "\nfinishing the step and saving; once more to stop at once\n");
    result = trainer.run();
    signal = interrupt.signal();
  }
  if (first) print_summary(result, options, train_data.source(), before);
  if (!result.interrupted) return kExitOk;
  if (first) fmt::print("interrupted; to go on:\n  {}\n", resume_hint(argc, argv));
  return kExitSignal + (signal != 0 ? signal : SIGTERM);  // 0: another process got the signal
}

}  // namespace

int run_train(int argc, char** argv) {
  TrainArguments arguments;
  auto app = make_parser(
      "train",
      "Trains a model and writes to --out: config.json, metrics.jsonl, metrics.csv, checkpoints/,\n"
      "live.json, quarantine.jsonl, receipt.json; no other run writes there meanwhile. Ctrl-C "
      "or\nSIGTERM finishes the step and saves;\n"
      "--resume goes on from the newest checkpoint, exactly, also after a kill.",
      "  stoker train --data data/cifar-10-batches-bin --model airnet --out runs/airnet\n"
      "  stoker train --data data/imagenette --model resnet18 --size 128 --epochs 10 --devices "
      "cpu:2\n"
      "  stoker train --data photos --subset part=0:0.9 --eval-data photos --eval-subset "
      "part=0.9:1\n"
      "  stoker train --data data/imagenette --weights balanced\n"
      "  stoker train --blend data/real=3 --blend data/drawn=1\n"
      "  stoker train --data train.jsonl --label-from none --target-from tags:float32 --model "
      "resnet18 --eval-data test.jsonl\n"
      "  stoker train --data data/cifar-10-batches-bin --devices cpu:2 --reduce independent --out "
      "runs/two\n"
      "  mpirun -np 2 stoker train --data data/cifar-10-batches-bin --devices cpu:2\n"
      "  stoker train --config run.toml --resume\n\n" +
          recipes_help());
  add_train_options(*app, arguments);
  if (const auto code = parse_options(*app, argc, argv)) return *code;

  const Launch launch = find_launch(process_environment());
  if (!launch.note.empty()) fmt::print("note: {}\n", launch.note);
  MeasureHooks measure = arguments.measure();
  TrainOptions options = arguments.options(launch);
  options.measure = &measure;
  check_train_options(*app, arguments, options, launch.world);
  if (arguments.explain_augment) {
    if (launch.rank == 0) print_explanation(options.recipe.train);
    return kExitOk;
  }
  return run_in_group(launch, options.devices, [&](ProcessGroup* processes) {
    return train(arguments, options, launch, processes, argc, argv);
  });
}

}  // namespace stoker
