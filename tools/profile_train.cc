#include "tools/profile_train.h"

#include <fmt/format.h>

#include "bench/allowed_cores.h"
#include "bench/profile/profile_session.h"
#include "tools/command.h"
#include "tools/seek_index_maker.h"
#include "tools/train_options.h"
#include "train/replica.h"

namespace stoker {
namespace {

constexpr double kManyEpochs = 10000;  // the session ends the run

FeedShape shape_of(const TrainOptions& options, const Trainer& trainer) {
  const bool gpus = on_gpus(options.devices);
  FeedShape shape;
  shape.devices = static_cast<int>(options.devices.size());
  shape.rows = static_cast<int>(trainer.global_batch() / shape.devices);
  shape.workers = options.workers;
  shape.io_threads = options.io_threads;
  shape.ring_depth = options.ring_depth;
  shape.slots = options.slots >= 0 ? options.slots : gpus ? 2 : 0;
  shape.zero_copy = !gpus;
  shape.on_gpus = gpus;
  shape.cores = allowed_cores();
  return shape;
}

TrainOptions options_of(const TrainArguments& arguments) {
  TrainOptions options = arguments.options(Launch{});
  options.out.clear();  // nothing is written
  options.receipt = false;
  options.resume = false;
  options.max_steps = 0;
  options.recipe.set_epochs(kManyEpochs);
  if (options.workers < 0) options.workers = own_cores(1);
  options.spare_workers = ProfileSession::spare_workers(options.workers);
  return options;
}

std::unique_ptr<Source> open_test(const TrainArguments& arguments) {
  if (!arguments.eval_data.empty()) return open_eval_data(arguments.eval_data, "--eval-data");
  try {
    return open_source(arguments.data.data, Split::test);
  } catch (const std::runtime_error&) {
    return nullptr;  // as `train`, which evaluates nothing then
  }
}

}  // namespace

ProfileOutcome profile_train(int argc, char** argv, double seconds) {
  if (argc < 1 || std::string(argv[0]) != "train") {
    throw std::invalid_argument("behind -- comes `train` and its options");
  }
  TrainArguments arguments;
  auto app = make_parser("train", "The training to profile.", "");
  add_train_options(*app, arguments);
  if (parse_options(*app, argc, argv))
    throw std::invalid_argument("--help: see stoker train --help");
  ProfileOutcome outcome;
  outcome.source = open_data(arguments.data.data, Split::train);
  const Source& source = *outcome.source;
  outcome.name_of = [&source](SampleId id) { return source.name(id); };
  const auto test = open_test(arguments);
  TrainOptions options = options_of(arguments);
  if (arguments.build_seek_index &&
      make_missing_seek_indexes(arguments.data.data, options.seek_index, true) != 0) {
    throw std::runtime_error("interrupted while the seek indexes were made");
  }
  const StorageRates storage = probe_storage(source, {.threads = std::max(1, options.io_threads)});
  Tracer tracer;
  ProfileSession session(
      {.seconds = seconds, .workers = options.workers, .warm_up_steps = options.ring_depth + 5},
      tracer);
  options.tracer = &tracer;
  options.replay = &session.replay();
  TrainObserver nobody;
  Trainer trainer(source, test.get(), options, nobody);
  fmt::print("profiling the training of {} ...\n", arguments.model);
  std::fflush(stdout);
  session.start({.limit_workers = [&](int workers) { trainer.limit_workers(workers); },
                 .stop = [&] { trainer.request_stop(); }});
  try {
    trainer.run();
  } catch (...) {
    session.finish();
    throw;
  }
  outcome.run = session.finish();
  outcome.profile = make_profile(outcome.run, shape_of(options, trainer), storage, outcome.name_of);
  outcome.profile.device = arguments.devices;
  outcome.profile.planned_bytes = trainer.planned_bytes();
  outcome.profile.verdict.unknown.push_back("checkpoints: a profiled training saves nothing");
  return outcome;
}

}  // namespace stoker
