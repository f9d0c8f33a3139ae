#include "tools/command/profile_feed.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "staging/allowed_cores.h"
#include "tools/profile/storage_probe.h"

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
  app.add_flag(
      "--cold", arguments.cold,
      "Read every file from storage while the profile runs: it is dropped from the page cache "
      "before it is read");
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
    fmt::print("{} files put out of the page cache, and again before each read\n", source.size());
  }
  fmt::print("profiling {} of {} images/s ...\n",
             arguments.devices == 1 ? "an emulated device"
                                    : fmt::format("{} emulated devices", arguments.devices),
             arguments.demand);
  std::fflush(stdout);
  outcome.profile = profile_emulated(arguments.cold ? *outcome.cold : source, augment, options,
                                     feed, outcome.run);
  return outcome;
}

}  // namespace stoker
