// stoker eval: the accuracy of a checkpoint, every sample counted exactly once.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "tools/command/command.h"
#include "tools/console/processes.h"
#include "tools/option/feed_options.h"
#include "tools/option/sample_choice.h"
#include "train/evaluate.h"
#include "train/run/replica.h"

namespace stoker {
namespace {

const std::map<std::string, std::optional<Precision>> kEvalPrecisions = {
    {"recipe", std::nullopt}, {"fp32", Precision::fp32}, {"bf16", Precision::bf16}};

struct EvalArguments {
  DataOptions data;
  SampleChoice samples;
  EvalCheckpointOptions run;
  std::string devices = "cpu:1";
  std::string precision = "recipe";
  bool json = false;
};

void add_eval_options(CLI::App& app, EvalArguments& arguments) {
  EvalCheckpointOptions& run = arguments.run;
  app.add_option("--checkpoint", run.checkpoint,
                 "Checkpoint to evaluate: its folder, its model.safetensors, or a run's folder, of "
                 "which the newest is taken")
      ->required();
  add_data_option(app, arguments.data);
  add_learned_target_option(app, arguments.data);
  add_sample_options(app, arguments.samples);
  app.add_option(
         "--split", arguments.data.split,
         "Part of the data to take. auto takes the test part, or all of a folder that has no parts")
      ->check(CLI::IsMember({"auto", "all", "train", "test", "val", "validation"}));
  app.add_option("--devices", arguments.devices,
                 "Devices of each process. cpu:N makes N replicas that share the cores; cuda:all "
                 "and cuda:0,1 take GPUs");
  app.add_option("--batch", run.rows,
                 "Samples per device and step. 0 chooses by the size of the images")
      ->check(CLI::Range(0, 1 << 24));
  app.add_option("--views", run.views,
                 "Views of each image: 1 (plain), 2 (also mirrored), 6 (also shifted); 0 takes the "
                 "recipe's")
      ->check(CLI::IsMember({0, 1, 2, 6}));
  app.add_option("--precision", arguments.precision,
                 "Number format of the computation. recipe takes that of the training")
      ->check(CLI::IsMember(&kEvalPrecisions));
  app.add_option("--threads", run.threads, "Threads that compute on the CPU. 0 takes one per core")
      ->check(CLI::Range(0, 1024));
  app.add_option("--limit", run.limit,
                 "Approximate number of samples, spread evenly over the data. 0 takes all")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--quarantine", run.quarantine_file,
                 "File to which bad samples are listed (JSONL)");
  app.add_flag("--json", arguments.json, "Print the result as JSON");
  add_decode_options(app, arguments.data);
  add_feed_options(app, arguments.data);
}

void print_eval_json(const EvalResult& result) {
  nlohmann::ordered_json json = {{"top1", result.top1},
                                 {"top5", result.top5},
                                 {"loss", result.loss},
                                 {"samples", result.samples},
                                 {"bad", result.bad},
                                 {"seconds", result.seconds},
                                 {"images_per_second", result.images_per_second}};
  if (const auto& cache = result.cache) {
    json["cache"] = {{"hits", cache->hits},
                     {"misses", cache->misses},
                     {"kept", cache->kept},
                     {"kept_bytes", cache->kept_bytes},
                     {"problem", cache->problem}};
  }
  fmt::print("{}\n", json.dump(2));
}

void print_eval_text(const EvalResult& result) {
  fmt::print(
      "top-1 {:.2f}%  top-5 {:.2f}%  loss {:.4f}  of {} images in {:.1f} s ({:.0f} images/s)\n",
      100 * result.top1, 100 * result.top5, result.loss, result.samples, result.seconds,
      result.images_per_second);
  if (result.cache) fmt::print("cache: {}\n", describe(*result.cache));
  if (result.bad > 0) fmt::print("{} images could not be decoded and do not count\n", result.bad);
}

// Each process lists its own bad samples: bad.jsonl, bad.rank1.jsonl, ...
std::string of_rank(const std::string& file, int rank) {
  if (file.empty() || rank == 0) return file;
  std::filesystem::path path = file;
  const std::string extension = path.extension();
  return path.replace_extension(fmt::format(".rank{}{}", rank, extension));
}

}  // namespace

int run_eval(int argc, char** argv) {
  EvalArguments arguments;
  arguments.data.split = "auto";
  auto app = make_parser(
      "eval",
      "Evaluates a checkpoint: top-1, top-5 and loss, every sample exactly once. Processes that "
      "mpirun,\n"
      "srun or torchrun started share the work, and the first one prints the result. With "
      "--weights or\n"
      "--blend the result is that of one epoch as they draw it: each sample counts as often as it "
      "comes.",
      "  stoker eval --checkpoint runs/airnet --data data/cifar-10-batches-bin\n"
      "  stoker eval --checkpoint runs/r18 --data data/imagenette --views 2 --json\n"
      "  stoker eval --checkpoint runs/r18/checkpoints/step_00000500 --data photos/by_class\n"
      "  stoker eval --checkpoint runs/r18 --data data/imagenette --subset classes=tench,church\n"
      "  stoker eval --checkpoint runs/r18 --data data/imagenette --weights balanced\n"
      "  stoker eval --checkpoint runs/tags --data test.jsonl --label-from none --target-from "
      "tags:float32\n"
      "  mpirun -np 2 stoker eval --checkpoint runs/r18 --data data/imagenette\n");
  add_eval_options(*app, arguments);
  if (const auto code = parse_options(*app, argc, argv)) return *code;
  check_sample_options(*app, arguments.samples, "--limit");
  check_feed_options(*app, arguments.data, paths_of(arguments.data, arguments.samples));
  check_seek_index(arguments.data);

  EvalCheckpointOptions options = arguments.run;
  if (!std::filesystem::exists(options.checkpoint)) {
    throw std::invalid_argument("--checkpoint: " + options.checkpoint +
                                ": No such file or directory");
  }
  const Launch launch = find_launch(process_environment());
  options.devices = parse_devices(arguments.devices, launch.local_rank, launch.local_world);
  if (on_gpus(options.devices)) {
    refuse_if_given(*app, {"--threads"}, "nothing computes on the CPU here; --workers decode");
  }
  options.local_processes = launch.local_world;
  options.precision = kEvalPrecisions.at(arguments.precision);
  options.feed = arguments.data.feed();
  options.quarantine_file = of_rank(options.quarantine_file, launch.rank);
  const DataOptions& data = arguments.data;
  const auto open = [&](const std::string& path, const std::string& option) {
    return data.split == "auto" ? open_eval_data(data, path, option)
                                : open_path(data, path, parse_split(data.split), option);
  };
  const ChosenSamples samples = choose_samples(data, arguments.samples, open);
  options.order = samples.order;
  return run_in_group(launch, options.devices, [&](ProcessGroup* processes) {
    options.processes = processes;
    const EvalResult result = evaluate_checkpoint(samples.source(), options);
    if (launch.rank == 0) arguments.json ? print_eval_json(result) : print_eval_text(result);
    return kExitOk;
  });
}

}  // namespace stoker
