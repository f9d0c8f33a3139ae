#include "tools/command/profile_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "pipeline/files/temporary_folder.h"
#include "staging/allowed_cores.h"
#include "staging/error_text.h"
#include "staging/stage_stats.h"
#include "tools/command/command.h"
#include "tools/option/train_options.h"
#include "tools/profile/session.h"
#include "tools/profile/storage_probe.h"
#include "train/run/replica.h"

namespace stoker {
namespace {

LoaderOptions profiled_loader_options(const ProfileFeedArguments& arguments) {
  LoaderOptions options;
  options.batch_size = arguments.batch;
  options.seed = arguments.seed;
  options.epochs = -1;
  options.feed = arguments.data.feed();
  if (options.feed.workers < 0) options.feed.workers = usable_cores();
  options.ring_depth = arguments.ring_depth;
  options.slots = arguments.slots;
  return options;
}

}  // namespace

void add_profile_feed_options(CLI::App& app, ProfileFeedArguments& arguments) {
  app.add_option("--data", arguments.data.data,
                 "The data, as for stoker check: a folder, shards or a list");
  add_field_options(app, arguments.data);
  add_objects_options(app, arguments.data);
  app.add_option("--demand", arguments.demand,
                 "Images/s that each emulated device takes, above 0: what your device trains at");
  app.add_option("--batch", arguments.batch, "Samples of each device's batch")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--emulated-devices", arguments.devices, "Number of emulated devices")
      ->check(CLI::Range(1, 64));
  app.add_option("--ring-depth", arguments.ring_depth,
                 "Batches that are decoded ahead for each device")
      ->check(CLI::Range(1, 1 << 16));
  app.add_option("--slots", arguments.slots,
                 "Batches that are staged on each device. -1 takes none")
      ->check(CLI::Range(-1, 3));
  app.add_option("--seed", arguments.seed, "Seed of the order and the augmentation");
  add_shuffle_option(app, arguments.samples);
  app.add_flag("--cold", arguments.cold,
               "Read every file from storage while the profile runs: it is dropped from the page "
               "cache before it is read");
  arguments.data.pixels = "fast";  // as in training
  add_split_option(app, arguments.data);
  add_decode_options(app, arguments.data);
  add_feed_options(app, arguments.data);
  add_augment_choice(app, arguments.augment);
}

ProfileOutcome profile_feed(const ProfileFeedArguments& arguments, double seconds,
                            const std::string& out) {
  if (!(arguments.demand > 0)) {
    throw std::invalid_argument(
        fmt::format("--demand: {:g} images/s must be above 0", arguments.demand));
  }
  ProfileOutcome outcome;
  outcome.source = open_data(arguments.data, parse_split(arguments.data.split));
  const Source& source = *outcome.source;
  outcome.name_of = [&source](SampleId id) { return source.name(id); };
  LoaderOptions options = profiled_loader_options(arguments);
  options.order = shuffle_order(source, arguments.samples);
  const AugmentSpec augment = arguments.augment.spec(source);
  std::filesystem::create_directories(out);  // fails before the run, not after it
  FeedRun feed;
  feed.demand = arguments.demand;
  feed.seconds = seconds;
  feed.devices = arguments.devices;
  feed.storage = probe_storage(source, {.threads = std::max(1, options.feed.io_threads)});
  if (arguments.cold) {
    outcome.cold = std::make_shared<ColdSource>(source);
    fmt::print(stderr, "{} files put out of the page cache, and again before each read\n",
               source.size());
  }
  fmt::print(stderr, "profiling {} of {} images/s ...\n",
             arguments.devices == 1 ? "an emulated device"
                                    : fmt::format("{} emulated devices", arguments.devices),
             arguments.demand);
  outcome.profile = profile_emulated(arguments.cold ? *outcome.cold : source, augment, options,
                                     feed, outcome.run);
  return outcome;
}

namespace {

namespace fs = std::filesystem;

constexpr double kManyEpochs = 10000;  // the session ends the run

FeedShape trained_shape(const TrainOptions& options, const Trainer& trainer) {
  const bool gpus = on_gpus(options.devices);
  FeedShape shape;
  shape.devices = static_cast<int>(options.devices.size());
  shape.rows = static_cast<int>(trainer.global_batch() / shape.devices);
  shape.workers = options.feed.workers;
  shape.io_threads = options.feed.io_threads;
  shape.ring_depth = options.ring_depth;
  shape.slots = options.slots >= 0 ? options.slots : gpus ? 2 : 0;
  shape.zero_copy = !gpus;
  shape.on_gpus = gpus;
  shape.cores = allowed_cores();
  shape.machine_cores = machine_cores();
  return shape;
}

TrainOptions options_of(const TrainArguments& arguments) {
  TrainOptions options = arguments.options(Launch{});
  options.out.clear();  // nothing is written
  options.receipt = false;
  options.resume = false;
  options.max_steps = 0;
  options.recipe.set_epochs(kManyEpochs);
  if (options.feed.workers < 0) options.feed.workers = usable_cores();
  return options;
}

// Options of a training that a profile has no use for.
constexpr std::initializer_list<const char*> kLeftOut = {
    "--epochs", "--max-steps", "--out",   "--resume",       "--keep",
    "--views",  "--verbose",   "--watch", "--log-interval", "--metrics-port"};

std::vector<std::string> left_out_of(const CLI::App& app) {
  std::vector<std::string> left_out;
  for (const char* option : kLeftOut) {
    if (is_given(app, option)) left_out.emplace_back(option);
  }
  return left_out;
}

void print_left_out(const std::vector<std::string>& options, bool receipt) {
  if (options.empty() && !receipt) return;
  fmt::print(stderr, "left out: {}{}{}; a profile ends by its --seconds and writes no run\n",
             fmt::join(options, ", "), !options.empty() && receipt ? " and " : "",
             receipt ? "the receipt, for which a training hashes every sample" : "");
}

int64_t bytes_in(const std::string& folder) {
  int64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) bytes += static_cast<int64_t>(entry.file_size());
  }
  return bytes;
}

// Writes and times a checkpoint as training does: after a step, while the feed decodes ahead.
CheckpointCost time_checkpoint(const Trainer& trainer, const TrainOptions& options,
                               const MeasureHooks& measure, const std::string& out,
                               Tracer& tracer) {
  const TemporaryFolder folder(out);
  CheckpointCost cost;
  cost.every_steps = trainer.steps_per_epoch();
  if (options.checkpoint_steps > 0) {
    cost.every_steps = std::min(cost.every_steps, options.checkpoint_steps);
  }
  const int64_t begin_ns = steady_now_ns();
  {
    const SpanTimer timer(&tracer, SpanKind::checkpoint, -1);
    measure.save_to(folder.path());
  }
  cost.seconds = static_cast<double>(steady_now_ns() - begin_ns) * 1e-9;
  cost.bytes = bytes_in(folder.path());
  return cost;
}

void add_checkpoint_evidence(const CheckpointCost& cost, const std::string& out, Profile& profile) {
  const double step_s = profile.measurements.measured.split.step;
  const double steps_s = step_s * static_cast<double>(cost.every_steps);
  profile.verdict.evidence.push_back(
      {fmt::format("a checkpoint takes {:.2g} s ({:.3g} MB), in which the devices wait: {:.2g}% of "
                   "the time with one every {} steps",
                   cost.seconds, 1e-6 * static_cast<double>(cost.bytes),
                   100 * cost.seconds / (cost.seconds + steps_s), cost.every_steps),
       "one that was written to " + out + " after the last step, and removed"});
}

}  // namespace

ProfileOutcome profile_train(int argc, char** argv, double seconds, const std::string& out) {
  if (argc < 1 || std::string(argv[0]) != "train") {
    throw std::invalid_argument("`train` and its options must follow --");
  }
  TrainArguments arguments;
  auto app = make_parser("train", "The training to profile.", "");
  add_train_options(*app, arguments);
  if (parse_options(*app, argc, argv))
    throw std::invalid_argument("--help: see stoker train --help");
  refuse_if_given(*app, {"--explain-augment"}, "see stoker train --explain-augment");
  TrainOptions options = options_of(arguments);
  check_train_options(*app, arguments, options, 1);
  const auto samples = std::make_shared<const ChosenSamples>(arguments.open_train_samples());
  ProfileOutcome outcome;
  outcome.source = {samples, &samples->source()};  // shares all that the source is made of
  const Source& source = *outcome.source;
  outcome.name_of = [&source](SampleId id) { return source.name(id); };
  std::vector<std::string> ignored;  // `train` says why it evaluates nothing
  const ChosenSamples test = arguments.open_eval_samples(ignored);
  arguments.set_samples(*samples, options);
  const StorageRates storage =
      probe_storage(source, {.threads = std::max(1, options.feed.io_threads)});
  Tracer tracer;
  ProfileSession session({.seconds = seconds,
                          .workers = options.feed.workers,
                          .warm_up_steps = options.ring_depth + 5},
                         tracer);
  options.tracer = &tracer;
  MeasureHooks measure = arguments.measure();
  measure.spare_workers = ProfileSession::spare_workers(options.feed.workers);
  measure.replay = &session.replay();
  options.measure = &measure;
  TrainObserver nobody;
  Trainer trainer(source, test.source_or_null(), options, nobody);
  fs::create_directories(out);  // fails before the run, not after it
  const std::vector<std::string> left_out = left_out_of(*app);
  print_left_out(left_out, !arguments.no_receipt);
  fmt::print(stderr, "profiling the training of {} ...\n", arguments.model);
  session.start({.limit_workers = measure.limit_workers, .stop = [&] { trainer.request_stop(); }});
  try {
    trainer.run();
  } catch (...) {
    session.finish();
    throw;
  }
  CheckpointCost checkpoint;
  std::string problem;
  try {
    checkpoint = time_checkpoint(trainer, options, measure, out, tracer);
  } catch (const std::exception& error) {  // a full disk, or weights that are not finite
    problem = error_text(error);
  }
  outcome.run = session.finish();
  outcome.profile = make_profile(outcome.run, trained_shape(options, trainer), storage,
                                 source.storage().store_stats(), outcome.name_of);
  outcome.profile.device = arguments.devices;
  outcome.profile.planned_bytes = trainer.planned_bytes();
  outcome.profile.checkpoint = checkpoint;
  outcome.profile.left_out = left_out;
  if (problem.empty()) {
    add_checkpoint_evidence(checkpoint, out, outcome.profile);
  } else {
    outcome.profile.verdict.unknown.push_back("what a checkpoint takes: " + problem);
  }
  return outcome;
}

}  // namespace stoker
