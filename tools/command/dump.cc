// stoker dump: writes batches as NumPy files, and where every row came from.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "pipeline/augment/unmoved_targets.h"
#include "tools/command/command.h"
#include "tools/console/progress.h"
#include "tools/data/dump_rows.h"
#include "tools/data/output_file.h"
#include "tools/option/augment_choice.h"
#include "tools/option/feed_options.h"
#include "tools/option/sample_choice.h"
#include "train/model/choices.h"

namespace stoker {
namespace {

const auto kDumpLastBatches = choices_by_name<LastBatch>();

struct DumpOptions {
  DataOptions data;
  SampleChoice samples;
  AugmentChoice augment;
  std::string out;
  int batch = 32;
  int64_t epoch = 0;
  int64_t steps = -1;
  uint64_t seed = 0;
  int rank = 0;
  int world = 1;
  bool no_shuffle = false;
  bool explain = false;
  std::string last_batch = "pad";
};

void add_dump_options(CLI::App& app, DumpOptions& options) {
  add_data_option(app, options.data);
  add_objects_options(app, options.data);
  add_target_options(app, options.data);
  add_sample_options(app, options.samples);
  add_shuffle_option(app, options.samples);
  add_split_option(app, options.data);
  app.add_option("--out", options.out, "Folder to write to")->required();
  app.add_option("--batch", options.batch, "Samples per batch")->check(CLI::Range(1, 1 << 24));
  app.add_option("--epoch", options.epoch, "The epoch to begin with, counted from 0")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  app.add_option("--steps", options.steps, "Number of batches to write; -1: the whole epoch")
      ->check(CLI::Range(int64_t{-1}, int64_t{1} << 40));
  app.add_option("--seed", options.seed, "Seed of the order and the augmentation");
  app.add_option("--rank", options.rank,
                 "The number of the process whose samples are written, of --world");
  app.add_option("--world", options.world, "Number of processes that share the epoch");
  app.add_flag("--no-shuffle", options.no_shuffle, "Take samples in the order of their ids");
  app.add_option(
         "--last-batch", options.last_batch,
         "What fills the last batch of an epoch. pad: repeated samples with weight 0; drop: "
         "nothing, the rest of the epoch is left out; wrap: the epoch's first samples again")
      ->check(CLI::IsMember(&kDumpLastBatches));
  add_augment_choice(app, options.augment);
  add_explain_option(app, options.explain);
  add_decode_options(app, options.data);
  add_feed_options(app, options.data);
}

LoaderOptions dump_loader_options(const DumpOptions& options) {
  LoaderOptions loader;
  loader.batch_size = options.batch;
  loader.seed = options.seed;
  loader.shuffle = !options.no_shuffle;
  loader.last_batch = kDumpLastBatches.at(options.last_batch);
  loader.rank = options.rank;
  loader.world = options.world;
  loader.epochs = options.steps < 0 ? 1 : -1;
  loader.first_epoch_offset = options.epoch;
  loader.feed = options.data.feed();
  loader.varying = options.data.varying();
  return loader;
}

}  // namespace

int run_dump(int argc, char** argv) {
  DumpOptions options;
  auto app = make_parser(
      "dump",
      "Writes batches as the trainer gets them: images_00000.npy (rows, height, width, 3) uint8,\n"
      "labels_00000.npy int32, weights_00000.npy float32, target_NAME_00000.npy for each\n"
      "--target-from; the number is the step, counted from the first one of --epoch. rows.jsonl\n"
      "has a line per row: step, row, sample_id, name (relative to --data), label, weight\n"
      "(0: padding, or a bad sample), source_width, source_height, crop, flip, draws. `crop` is\n"
      "[x, y, width, height] in source pixels: what the first crops and resizes show, which may "
      "be\n"
      "fractions and lie over the edge. `draws` is all that was done to the image, in order;\n"
      "with views() it has a line for each view, whose rows are target_view_1_00000.npy, ..., and\n"
      "with pictures() one for each picture, whose rows are target_NAME_00000.npy.\n"
      "Targets of any length have the values of all rows one behind the other, and row r's from\n"
      "target_NAME_offsets_00000.npy [r] to [r + 1]; `texts` in rows.jsonl are the texts.",
      "  stoker dump --data data/imagenette --size 224 --batch 32 --steps 2 --out /tmp/dump\n"
      "  stoker dump --data data/cifar --model airnet --batch 256 --rank 1 --world 2 --out d\n"
      "  stoker dump --data data/imagenette --augment \"random_resized_crop(160) | solarize(128)\" "
      "--out d\n"
      "  stoker dump --data data/imagenette --view eval --no-shuffle --split test --out d\n"
      "  stoker dump --data data/imagenette --subset part=0:0.1 --weights balanced --out d\n"
      "  stoker dump --blend data/real=3 --blend data/drawn=1 --batch 64 --out d\n");
  add_dump_options(*app, options);
  if (const auto code = parse_options(*app, argc, argv)) return *code;
  check_sample_options(*app, options.samples, "");
  if (options.samples.has_order()) {
    refuse_if_given(*app, {"--no-shuffle"},
                    "--weights, --blend and --shuffle-blocks say in which order samples come");
  }
  check_feed_options(*app, options.data, paths_of(options.data, options.samples));
  check_seek_index(options.data);

  const ChosenSamples samples =
      choose_samples(options.data, options.samples, parse_split(options.data.split));
  const Source& source = samples.source();
  const AugmentSpec augment = options.augment.spec(source);
  if (options.explain) {
    print_explanation(augment);
    return kExitOk;
  }
  const auto device = make_host_device();
  const auto stream = device->make_stream();
  if (const std::string unmoved = unmoved_targets(source, augment); !unmoved.empty()) {
    fmt::print(stderr, "--target-from: {}\n", unmoved);
  }
  LoaderOptions feed = dump_loader_options(options);
  feed.order = samples.order;
  Loader loader(source, augment, {device.get()}, feed);
  const int64_t steps = options.steps < 0 ? loader.steps_per_epoch() : options.steps;
  std::filesystem::create_directories(options.out);
  OutputFile rows(options.out + "/rows.jsonl");
  Progress progress(steps);
  for (int64_t step = 0; step < steps; ++step) {
    const DeviceBatch batch = loader.next(0, *stream);
    batch.synchronize();
    write_batch_files(options.out, loader.targets(), batch);
    rows.append(
        rows_jsonl(source, augment, options.seed, batch, feed.feed.decode, loader.targets()));
    progress.update(step + 1, fmt::format("{} of {} batches", step + 1, steps));
  }
  rows.close();
  fmt::print("{} batches of {} x {} x {} in {}\n", steps, options.batch, augment.output.height,
             augment.output.width, options.out);
  return kExitOk;
}

}  // namespace stoker
