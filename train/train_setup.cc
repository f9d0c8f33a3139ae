#include "train/train_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "train/durable_file.h"
#include "train/initialise.h"
#include "train/metrics.h"
#include "train/recipe_json.h"
#include "train/whitening.h"

namespace stoker {
namespace {

// A resumed run may change these; the rest decides what was computed so far.
const std::vector<std::string>& may_change() {
  static const std::vector<std::string> fields = {"epochs", "rows_per_shard", "eval_views",
                                                  "precision", "schedule.warmup_epochs"};
  return fields;
}

void require(bool ok, const std::string& message) {
  if (!ok) throw std::invalid_argument(message);
}

int largest_divisor(int value, int at_most) {
  int divisor = std::min(value, at_most);
  while (value % divisor != 0) --divisor;
  return divisor;
}

ModelInfo model_of(const Recipe& recipe, const Source& train, const Source* eval) {
  ModelInfo info;
  info.recipe = recipe;
  info.class_names = train.class_names();
  info.classes = static_cast<int>(info.class_names.size());
  require(info.classes >= 1, "the training data at " + train.root() + " name no classes");
  if (eval && eval->class_names() != info.class_names) {
    throw std::invalid_argument(fmt::format(
        "training data at {} have {} classes, evaluation data at {} have {}, or other names",
        train.root(), info.classes, eval->root(), eval->class_names().size()));
  }
  return info;
}

}  // namespace

TrainSetup::TrainSetup(const Source& train_source, const Source* eval_source,
                       const TrainOptions& wanted, const EngineFactory& make_engine)
    : options(wanted),
      train(train_source, wanted.limit_train),
      eval(eval_source && eval_source->size() > 0 ? eval_source : nullptr) {
  options.recipe.validate();
  require(options.replicas >= 1, fmt::format("devices: {} is below 1", options.replicas));
  require(options.keep_checkpoints >= 1,
          fmt::format("keep_checkpoints: {} is below 1", options.keep_checkpoints));
  require(options.eval_every_epochs >= 0,
          fmt::format("eval_every_epochs: {:g} is negative", options.eval_every_epochs));
  require(train.size() > 0, "no training samples at " + train.root());
  resolve_shards();
  model = model_of(options.recipe, train, eval);
  net = model.net();
  parameters = parameter_table(net);
  make_replicas(make_engine);

  if (!options.out.empty()) {
    std::filesystem::create_directories(options.out);
    runs = options.out + "/checkpoints";
  }
  TrainState state = resume();
  make_loader();
  make_receipt();
  if (resumed_from.empty()) state = first_state();
  for (const Replica& replica : replicas) write_state(state, *replica.engine);

  MemoryPlan eval_feed;
  if (eval) {
    const SubsetSource subset(*eval, options.limit_eval);
    eval_feed = evaluation_memory(subset, device_list(), rows, eval_options(1));
  }
  planned_bytes = loader->memory_plan().total_bytes() + eval_feed.total_bytes();
  for (const Replica& replica : replicas) planned_bytes += replica.engine->planned_bytes();
  plan = plan_lines(*this, eval_feed);
  if (!options.out.empty()) replace_file(options.out + "/config.json", config_text(*this));
}

void TrainSetup::resolve_shards() {
  Recipe& recipe = options.recipe;
  require(recipe.batch % options.replicas == 0,
          fmt::format("batch: the global batch of {} does not divide over {} devices", recipe.batch,
                      options.replicas));
  rows = recipe.batch / options.replicas;
  const int shard = largest_divisor(rows, recipe.rows_per_shard);
  if (shard != recipe.rows_per_shard) {
    notes.push_back(fmt::format(
        "{} rows per device are cut into shards of {} rows, not of the recipe's {}: batch norm "
        "sees other rows than in a run with shards of {}",
        rows, shard, recipe.rows_per_shard, recipe.rows_per_shard));
    recipe.rows_per_shard = shard;
  }
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int threads = options.threads > 0 ? options.threads : cores;
  engine_threads = std::max(1, threads / options.replicas);
  if (rows / shard < engine_threads) {
    notes.push_back(
        fmt::format("{} shards per device keep {} of {} threads busy: fewer rows per "
                    "shard would use more, and change what batch norm sees",
                    rows / shard, rows / shard, engine_threads));
  }
  precision = recipe.resolved_precision();
}

void TrainSetup::make_replicas(const EngineFactory& make_engine) {
  const Recipe& recipe = options.recipe;
  EngineOptions engine;
  engine.rows = rows;
  engine.rows_per_shard = recipe.rows_per_shard;
  engine.nominal_rows = recipe.batch;
  engine.precision = precision;
  engine.workers = engine_threads;
  engine.mean = recipe.mean;
  engine.stddev = recipe.stddev;
  engine.label_smoothing = static_cast<float>(recipe.label_smoothing);
  for (int i = 0; i < options.replicas; ++i) {
    Replica replica;
    replica.device = make_host_device(i);
    replica.engine = make_engine ? make_engine(net, engine, i) : make_cpu_engine(net, engine);
    replicas.push_back(std::move(replica));
  }
  collective = make_host_collective(options.replicas);
}

TrainState TrainSetup::resume() {
  TrainState state;
  progress.model = model;
  progress.seed = options.seed;
  if (!options.resume || runs.empty()) return state;
  std::vector<std::string> torn;
  resumed_from = newest_checkpoint(runs, &torn);
  for (const std::string& each : torn) notes.push_back("torn checkpoint left aside: " + each);
  if (resumed_from.empty()) {
    notes.push_back("no checkpoint in " + runs + ": starting from the beginning");
    return state;
  }
  load_checkpoint(resumed_from, progress, state);
  const auto refuse = [&](const std::string& difference) {
    throw std::invalid_argument(
        fmt::format("cannot resume from {}: this run has another {}", resumed_from, difference));
  };
  const std::string difference =
      recipe_difference(progress.model.recipe, options.recipe, may_change());
  if (!difference.empty()) refuse(difference);
  const std::string changed = recipe_difference(progress.model.recipe, options.recipe);
  if (!changed.empty()) notes.push_back("changed since the checkpoint: " + changed);
  if (progress.seed != options.seed) {
    refuse(fmt::format("seed: {} -> {}", progress.seed, options.seed));
  }
  if (progress.model.class_names != model.class_names) refuse("list of classes");
  progress.model = model;
  return state;
}

void TrainSetup::make_loader() {
  const Recipe& recipe = options.recipe;
  feed.batch_size = rows;
  feed.seed = options.seed;
  feed.last_batch = recipe.last_batch;
  feed.epochs = recipe.epochs;
  feed.first_step = progress.step;
  feed.workers = options.workers;
  feed.io_threads = options.io_threads;
  feed.ring_depth = options.ring_depth;
  feed.slots = options.slots;
  feed.decode = options.decode;
  feed.on_bad_sample = options.on_bad_sample;
  feed.max_bad = options.max_bad;
  feed.digests = options.receipt && !options.out.empty();
  if (!options.out.empty()) {
    feed.quarantine_file = options.out + "/quarantine.jsonl";
    trim_jsonl(feed.quarantine_file, progress.step - 1);  // its steps count from 0
  }
  loader = std::make_unique<Loader>(train, recipe.train, device_list(), feed);
  if (!resumed_from.empty()) Loader::resume_step(progress.loader, *loader);
  steps_per_epoch = loader->steps_per_epoch();
  total_steps = loader->end_step();
  end_step = options.max_steps > 0 ? std::min(options.max_steps, total_steps) : total_steps;
}

void TrainSetup::make_receipt() {
  if (!feed.digests) return;
  ReceiptInfo info = receipt_info(*loader, train, options.recipe.train, feed, options.replicas);
  info.version = options.version;
  info.libraries = options.libraries;
  receipt = std::make_unique<Receipt>(options.out, info, progress.step);
}

TrainState TrainSetup::first_state() const {
  const Recipe& recipe = options.recipe;
  InitOptions init = default_init(net, options.seed);
  init.zero_gamma = recipe.zero_gamma;
  TrainState state;
  state.parameters = initial_parameters(net, init);
  state.statistics = initial_statistics(net);
  state.momenta.assign(state.parameters.size(), 0.0f);
  if (recipe.whitening) {
    const std::vector<float> filters = whitening_filters(
        patch_moments(train, recipe.eval, options.decode), recipe.mean, recipe.stddev);
    require(parameters.at(0).count == static_cast<int64_t>(filters.size()),
            "whitening: the first tensor of " + net.name + " is not a (24, 3, 2, 2) convolution");
    std::copy(filters.begin(), filters.end(), state.parameters.begin() + parameters[0].offset);
  }
  if (recipe.average.kind != AverageKind::none) {
    state.average = state.parameters;
    state.average_statistics = state.statistics;
  }
  return state;
}

EvalOptions TrainSetup::eval_options(int views) const {
  EvalOptions result;
  result.augment = options.recipe.eval;
  result.views = views;
  result.averaged = options.recipe.average.kind != AverageKind::none;
  result.workers = options.workers;
  result.io_threads = options.io_threads;
  result.decode = options.decode;
  result.decode.pixels = PixelPolicy::exact;
  result.on_bad_sample = options.on_bad_sample;
  result.max_bad = options.max_bad;
  result.limit = options.limit_eval;
  return result;
}

std::vector<Engine*> TrainSetup::engine_list() const {
  std::vector<Engine*> list;
  for (const Replica& replica : replicas) list.push_back(replica.engine.get());
  return list;
}

std::vector<Device*> TrainSetup::device_list() const {
  std::vector<Device*> list;
  for (const Replica& replica : replicas) list.push_back(replica.device.get());
  return list;
}

}  // namespace stoker
