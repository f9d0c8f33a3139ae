#include "tools/option/train_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <iterator>
#include <map>
#include <stdexcept>

#include "tools/command/command.h"
#include "tools/machine/build_info.h"
#include "tools/option/augment_choice.h"
#include "train/run/replica.h"

namespace stoker {
namespace {

const std::map<std::string, ScheduleKind> kSchedules = {{"constant", ScheduleKind::constant},
                                                        {"step", ScheduleKind::step},
                                                        {"cosine", ScheduleKind::cosine},
                                                        {"triangle", ScheduleKind::triangle}};
const std::map<std::string, std::optional<Precision>> kPrecisions = {
    {"auto", std::nullopt}, {"fp32", Precision::fp32}, {"bf16", Precision::bf16}};

const std::map<std::string, FeedKind> kFeeds = {
    {"real", FeedKind::real}, {"synthetic", FeedKind::synthetic}, {"resident", FeedKind::resident}};
const std::map<std::string, ReduceKind> kReductions(std::begin(kReduceKinds),
                                                    std::end(kReduceKinds));
const std::map<std::string, Precision> kCommTypes = {{"fp32", Precision::fp32},
                                                     {"bf16", Precision::bf16}};

const std::string kAutomatic = "auto";
constexpr int kMaxBatch = 1 << 24;

template <typename To, typename From>
void set(const std::optional<From>& from, To& to) {
  if (from) to = static_cast<To>(*from);
}

int whole_batch(const std::string& text) {
  int rows = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, rows);
  if (error != std::errc() || stop != end || rows < 1 || rows > kMaxBatch) {
    throw std::invalid_argument(fmt::format(
        "--batch: '{}' is neither a number of rows from 1 to {} nor auto", text, kMaxBatch));
  }
  return rows;
}

// Milestones are epochs, as in PyTorch's MultiStepLR; the recipe has them as shares of the run.
void set_steps(const TrainArguments& arguments, Recipe& recipe) {
  const bool milestones = !arguments.milestones.empty();
  if (recipe.schedule.kind != ScheduleKind::step && (milestones || arguments.gamma)) {
    throw std::invalid_argument(
        fmt::format("{}: it is of --schedule step", milestones ? "--milestones" : "--gamma"));
  }
  set(arguments.gamma, recipe.schedule.gamma);
  if (!milestones) return;
  recipe.schedule.milestones.clear();
  double previous = 0;
  for (const double epoch : arguments.milestones) {
    if (epoch <= previous || epoch >= recipe.epochs) {
      throw std::invalid_argument(
          fmt::format("--milestones: {} must be epochs that ascend, within the {:g} of --epochs",
                      fmt::join(arguments.milestones, ","), recipe.epochs));
    }
    recipe.schedule.milestones.push_back(epoch / recipe.epochs);
    previous = epoch;
  }
}

Recipe make_recipe(const TrainArguments& arguments) {
  Recipe recipe = default_recipe(arguments.model);
  if (arguments.size) recipe.set_input({*arguments.size, *arguments.size});
  if (arguments.epochs) recipe.set_epochs(*arguments.epochs);
  if (arguments.batch && *arguments.batch != kAutomatic)
    recipe.batch = whole_batch(*arguments.batch);
  set(arguments.micro_batch_rows, recipe.micro_batch_rows);
  set(arguments.learning_rate, recipe.optimizer.learning_rate);
  set(arguments.lr_ref_batch, recipe.optimizer.lr_ref_batch);
  set(arguments.momentum, recipe.optimizer.momentum);
  set(arguments.weight_decay, recipe.optimizer.weight_decay);
  set(arguments.label_smoothing, recipe.label_smoothing);
  set(arguments.warmup_epochs, recipe.schedule.warmup_epochs);
  set(arguments.mixup, recipe.mix.mixup_alpha);
  set(arguments.cutmix, recipe.mix.cutmix_alpha);
  set(arguments.views, recipe.eval_views);
  if (arguments.schedule) recipe.schedule.kind = kSchedules.at(*arguments.schedule);
  set_steps(arguments, recipe);
  if (arguments.last_batch) recipe.last_batch = last_batch_names().at(*arguments.last_batch);
  if (arguments.ema) {
    recipe.average = {.kind = AverageKind::ema, .every = 1, .decay = *arguments.ema};
  }
  recipe.precision = kPrecisions.at(arguments.precision);
  arguments.augment.apply(recipe.train);
  recipe.validate();
  return recipe;
}

void add_recipe_options(CLI::App& app, TrainArguments& arguments) {
  const auto add = [&app](const std::string& name, auto& value, const std::string& text) {
    return app.add_option(name, value, text)->group("Recipe (default: the model's, see below)");
  };
  add("--epochs", arguments.epochs, "May end inside an epoch: 9.9");
  add("--batch", arguments.batch, "Rows per step, all devices together; auto: as many as fit");
  add("--size", arguments.size, "Width and height that the model sees, pixels")
      ->check(CLI::Range(1, 1 << 14));
  add("--lr", arguments.learning_rate, "Learning rate at a batch of --lr-ref-batch");
  add("--lr-ref-batch", arguments.lr_ref_batch, "The rate grows with batch / this; 0: it does not");
  add("--momentum", arguments.momentum, "Of SGD");
  add("--weight-decay", arguments.weight_decay, "Not on batch norms and biases");
  add("--label-smoothing", arguments.label_smoothing, "0 to 1");
  add("--schedule", arguments.schedule, "Of the learning rate, over the whole run")
      ->check(CLI::IsMember(&kSchedules));
  add("--milestones", arguments.milestones,
      "step: epochs after which the rate is multiplied by --gamma, as 30,60,80")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->default_str("");
  add("--gamma", arguments.gamma, "step: at each of the milestones; in (0, 1]");
  add("--warmup-epochs", arguments.warmup_epochs, "Linear, per step");
  add("--mixup", arguments.mixup, "Alpha of its Beta distribution; 0: off");
  add("--cutmix", arguments.cutmix, "Alpha of its Beta distribution; 0: off");
  add("--ema", arguments.ema, "Decay per step of averaged weights, which are then evaluated");
  add("--micro-batch", arguments.micro_batch_rows, "Rows that batch norm sees together");
  add("--last-batch", arguments.last_batch,
      "pad: repeats rows with weight 0; drop: leaves the rest of the epoch "
      "out; wrap: takes the "
      "epoch's first rows again")
      ->check(CLI::IsMember(&last_batch_names()));
  add("--views", arguments.views,
      "Of each image in the last evaluation: 1, 2 (mirrored) or 6 (shifted as "
      "well)")
      ->check(CLI::IsMember({1, 2, 6}));
}

void add_run_options(CLI::App& app, TrainArguments& arguments) {
  TrainOptions& run = arguments.run;
  app.add_option("--devices", arguments.devices,
                 "Of each process: cpu:N, N replicas that share the cores; "
                 "cuda:all; cuda:0,1; "
                 "cuda:0*2, two on one");
  app.add_option("--reduce", arguments.reduce,
                 "How gradients are summed; none: not at all, to measure")
      ->check(CLI::IsMember(&kReductions));
  app.add_option("--comm-dtype", arguments.comm_dtype, "Of gradients between GPUs")
      ->check(CLI::IsMember(&kCommTypes));
  app.add_option("--bucket-mib", arguments.bucket_mib,
                 "Gradients on GPUs are summed in buckets of so many MiB while "
                 "the backward pass "
                 "runs; 0: all after it")
      ->check(CLI::Range(0.0, 1e6));
  app.add_option("--feed", arguments.feed,
                 "To measure: synthetic, the first batches again and again; "
                 "resident, the first "
                 "epoch, staged on the device once")
      ->check(CLI::IsMember(&kFeeds));
  app.add_option("--resident-mib", arguments.resident_mib,
                 "Of a device, for --feed resident: as many batches as fit are "
                 "replayed; 0: the "
                 "epoch must fit")
      ->check(CLI::Range(0.0, 1e9));
  app.add_option("--precision", arguments.precision, "auto: bf16 where the CPU has it")
      ->check(CLI::IsMember(&kPrecisions));
  app.add_option("--seed", run.seed, "Of first weights, order and augmentation");
  app.add_option("--out", arguments.out, "Folder of results (default: runs/MODEL)");
  app.add_flag("--resume", run.resume, "Go on from the newest checkpoint in --out");
  app.add_option("--checkpoint-steps", run.checkpoint_steps,
                 "Save every so many steps; 0: only at the end of an epoch")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--keep", run.keep_checkpoints, "Checkpoints to keep, the newest")
      ->check(CLI::Range(1, 1 << 24));
  app.add_option("--eval-every", run.eval_every_epochs,
                 "Evaluate every so many epochs; 0: only at the end")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--eval-data", arguments.eval_data,
                 "Evaluate on this folder's test part, or on all of it if it "
                 "has no parts (default: "
                 "the test part of --data, if it has one)");
  app.add_option("--limit-train", run.limit_train, "About this many training samples; 0: all")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--limit-eval", run.limit_eval, "About this many test samples; 0: all")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--max-steps", run.max_steps, "End after this step; 0: --epochs decide")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--log-interval", run.log_interval,
                 "Steps per row of metrics; 0: about 20 rows an epoch")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--threads", run.threads, "Threads that compute; 0: one per core")
      ->check(CLI::Range(0, 1024));
  app.add_option("--ring-depth", run.ring_depth, "Batches decoded ahead, per device")
      ->check(CLI::Range(1, 1 << 16));
  app.add_option("--slots", run.slots,
                 "Batches staged on a device, 0 to 3; -1: 2 on GPUs, none on "
                 "host devices")
      ->check(CLI::Range(-1, 3));
  app.add_flag("--build-seek-index", arguments.build_seek_index,
               "First make the seek indexes that --seek-index finds, if there are none yet, as "
               "stoker index does");
  app.add_flag("--no-receipt", arguments.no_receipt, "Do not hash what is trained on");
  app.add_flag("--watch", arguments.watch,
               "Show feed, ring, process and GPUs while it runs (elsewhere: "
               "stoker top RUNDIR)");
  app.add_option("--metrics-port", arguments.metrics_port,
                 "Serve http://127.0.0.1:PORT/metrics for Prometheus while it "
                 "runs; 0: a free port")
      ->check(CLI::Range(0, 65535));
}

}  // namespace

TrainOptions TrainArguments::options(const Launch& launch) const {
  TrainOptions options = run;
  options.recipe = make_recipe(*this);
  options.devices = parse_devices(devices, launch.local_rank, launch.local_world);
  options.batch_auto = batch == kAutomatic;
  options.local_processes = launch.local_world;
  options.reduce = kReductions.at(reduce);
  options.comm_dtype = kCommTypes.at(comm_dtype);
  options.bucket_bytes = static_cast<int64_t>(bucket_mib * (1 << 20));
  options.out = out.empty() ? "runs/" + model : out;
  options.feed = data.feed();
  options.receipt = !no_receipt;
  options.version = kBuildVersion;
  for (const BuildLibrary& library : kBuildLibraries) {
    if (*library.version) options.libraries.emplace_back(library.name, library.version);
  }
  return options;
}

MeasureHooks TrainArguments::measure() const {
  MeasureHooks hooks;
  hooks.feed = kFeeds.at(feed);
  hooks.resident_bytes = static_cast<int64_t>(resident_mib * (1 << 20));
  return hooks;
}

void add_train_options(CLI::App& app, TrainArguments& arguments) {
  add_data_option(app, arguments.data);
  app.add_option("--model", arguments.model, "With its recipe, see below")
      ->check(CLI::IsMember(recipe_names()));
  add_run_options(app, arguments);
  arguments.data.pixels = "fast";  // of training; evaluation is always exact
  add_decode_options(app, arguments.data);
  add_feed_options(app, arguments.data);
  add_recipe_options(app, arguments);
  add_augment_options(app, arguments.augment);
}

void check_train_options(const CLI::App& app, const TrainArguments& arguments,
                         const TrainOptions& options, int world) {
  check_feed_options(app, arguments.data);
  if (!arguments.build_seek_index) check_seek_index(arguments.data);
  const Recipe& recipe = options.recipe;
  const int rows = recipe.batch / static_cast<int>(options.devices.size()) / world;
  const bool fewer = recipe.micro_batch_rows < rows;
  if (on_gpus(options.devices)) {
    refuse_if_given(app, {"--threads"}, "nothing computes on the CPU here; --workers decode");
    if (fewer && !options.batch_auto) {
      refuse_if_given(app, {"--micro-batch"}, "batch norm sees all rows of a GPU together");
    }
  } else {
    if (arguments.bucket_mib > 0) {  // all after the pass, as 0 says, is what happens here
      refuse_if_given(app, {"--bucket-mib"}, "it is for gradients on GPUs");
    }
    if (fewer && rows % recipe.micro_batch_rows != 0 && !options.batch_auto) {
      refuse_if_given(app, {"--micro-batch"},
                      fmt::format("the {} rows of a device do not divide into micro-batches of {}",
                                  rows, recipe.micro_batch_rows));
    }
  }
  const MeasureHooks measured = arguments.measure();
  if (measured.feed != FeedKind::resident) {
    refuse_if_given(app, {"--resident-mib"}, "it is of --feed resident");
  }
  if (measured.feed != FeedKind::real || options.reduce == ReduceKind::none) {
    refuse_if_given(app, {"--resume"},
                    "runs that measure (--feed, --reduce none) have no checkpoints");
  }
}

std::string recipes_help() {
  std::string text = "Models and their recipes:\n";
  for (const std::string& name : recipe_names()) {
    text += "  " + name + "\n";
    for (const std::string& line : describe(default_recipe(name))) text += "    " + line + "\n";
  }
  return text;
}

}  // namespace stoker
