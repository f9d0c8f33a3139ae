#include "train/run/setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "pipeline/durable_file.h"
#include "pipeline/invalid_field.h"
#include "train/model/recipe_json.h"
#include "train/run/metrics.h"

namespace stoker {
namespace {

void require(bool ok, const std::string& field, const std::string& problem) {
  if (!ok) throw InvalidField("train", field, problem);
}

// Fewer rows than half of those wanted are another batch norm, not a rounding.
bool is_near(int shard, int wanted) { return 2 * shard >= wanted; }

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
  if (info.classes < 1) {
    throw std::invalid_argument("the training data at " + train.root() + " name no classes");
  }
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
      processes(wanted.processes),
      train(train_source, wanted.limit_train),
      eval(eval_source && eval_source->size() > 0 ? eval_source : nullptr) {
  check_options();
  if (options.batch_auto) {
    choose_batch(model_of(options.recipe, train, eval).net(), make_engine);
  }
  resolve_shards();
  model = model_of(options.recipe, train, eval);
  net = model.net();
  require_labels(train, net);
  if (eval) require_labels(SubsetSource(*eval, options.limit_eval), net);
  parameters = parameter_table(net);
  make_replicas(make_engine);
  plan_feed();
  make_folders();  // from here on files are written: all that can be checked before it was
  const TrainState state = first_state();
  make_loader();
  make_resident();
  make_receipt();
  for (const Replica& replica : replicas) write_state(state, *replica.engine);
  state_copy_bytes = state_bytes(state);
  make_plan();
}

void TrainSetup::check_options() {
  options.recipe.validate();
  if (!options.devices.empty()) options.replicas = static_cast<int>(options.devices.size());
  require(options.replicas >= 1, "devices", fmt::format(": {} is below 1", options.replicas));
  require(options.keep_checkpoints >= 1, "keep_checkpoints",
          fmt::format(": {} is below 1", options.keep_checkpoints));
  require(options.bucket_bytes >= 0, "bucket_bytes",
          fmt::format(": {} is negative", options.bucket_bytes));
  require(measure().resident_bytes >= 0, "resident_bytes",
          fmt::format(": {} is negative", measure().resident_bytes));
  require(options.eval_every_epochs >= 0, "eval_every_epochs",
          fmt::format(": {:g} is negative", options.eval_every_epochs));
  require(options.grad_wire == Precision::fp32 || on_gpus(options.devices), "grad_wire",
          " is bf16, but that is between GPUs; replicas on the CPU are summed in fp32");
  if (train.size() < 1) throw std::invalid_argument("no training samples at " + train.root());
  const int cores = own_cores(options.local_processes);
  if (options.threads <= 0) options.threads = cores;
  if (options.feed.workers < 0) options.feed.workers = cores;
  if (options.slots < 0) options.slots = on_gpus(options.devices) ? 2 : 0;
  precision = options.recipe.resolved_precision();
  if (on_gpus(options.devices) && !options.recipe.precision) precision = Precision::bf16;
  processes.require_same(options.replicas, "devices: the number of replicas");
  processes.require_same_text(
      fmt::format("{} {} {} {} {} {} {} {} {} {} {}", recipe_to_json(options.recipe).dump(),
                  options.seed, options.max_steps, options.checkpoint_steps,
                  options.eval_every_epochs, options.limit_train, options.limit_eval,
                  static_cast<int>(measure().feed), static_cast<int>(options.reduce),
                  static_cast<int>(options.grad_wire), options.bucket_bytes),
      "recipe and options");
}

void TrainSetup::resolve_shards() {
  Recipe& recipe = options.recipe;
  require(recipe.batch % all_replicas() == 0, "batch",
          fmt::format(": the global batch of {} does not divide over {} devices", recipe.batch,
                      all_replicas()));
  rows = recipe.batch / all_replicas();
  if (on_gpus(options.devices)) {
    recipe.rows_per_shard = rows;  // one net per device: batch norm sees all of its rows
    return;
  }
  const int wanted = std::min(recipe.rows_per_shard, rows);
  const int shard = largest_divisor(rows, wanted);
  const int fewer = rows / wanted * wanted * all_replicas();
  require(
      is_near(shard, wanted), "batch",
      fmt::format(": {} rows on {} devices are {} each, which do not divide into shards of {} "
                  "rows for batch norm (`rows_per_shard`), only of {}: take a batch of {} or {}",
                  recipe.batch, all_replicas(), rows, wanted, shard, fewer,
                  fewer + wanted * all_replicas()));
  if (shard != recipe.rows_per_shard) {
    notes.push_back(fmt::format(
        "{} rows per device are cut into shards of {} rows, not of the recipe's {}: batch norm "
        "sees other rows than in a run with shards of {}",
        rows, shard, recipe.rows_per_shard, recipe.rows_per_shard));
    recipe.rows_per_shard = shard;
  }
  engine_threads = std::max(1, options.threads / options.replicas);
  if (rows / shard < engine_threads) {
    notes.push_back(
        fmt::format("{} shards per device keep {} of {} threads busy: fewer rows per "
                    "shard would use more, and change what batch norm sees",
                    rows / shard, rows / shard, engine_threads));
  }
}

void TrainSetup::make_folders() {
  if (options.out.empty()) return;
  std::filesystem::create_directories(options.out);
  // The others write nothing before this process has told them where the run starts.
  if (writes()) lock = std::make_unique<RunLock>(options.out);
  if (measure().feed != FeedKind::real || options.reduce == ReduceKind::none || measure().replay) {
    notes.push_back(
        "this run measures what is left of a step without its input or its communication: it "
        "writes no checkpoint and no receipt");
    options.receipt = false;
  } else if (writes()) {
    runs = options.out + "/checkpoints";
  }
}

void TrainSetup::plan_feed() {
  const Recipe& recipe = options.recipe;
  loader_options.batch_size = rows;
  loader_options.rank = processes.rank();
  loader_options.world = processes.size();
  loader_options.seed = options.seed;
  loader_options.last_batch = recipe.last_batch;
  loader_options.epochs = recipe.epochs;
  loader_options.feed = options.feed;
  loader_options.ring_depth = options.ring_depth;
  loader_options.slots = options.slots;
  loader_options.tracer = options.tracer;
  loader_options.measure = options.measure;
  Loader::check(train, recipe.train, device_list(), loader_options);
  const int64_t bytes = ResidentBatches::batch_bytes(batch_shape());
  require(measure().feed != FeedKind::resident || measure().resident_bytes == 0 ||
              measure().resident_bytes >= bytes,
          "resident_bytes",
          fmt::format(": a budget of {} bytes holds no batch of {} bytes", measure().resident_bytes,
                      bytes));
}

void TrainSetup::make_loader() {
  const Recipe& recipe = options.recipe;
  loader_options.first_step = progress.step;
  loader_options.digests = options.receipt && !options.out.empty();
  if (!options.out.empty()) {
    loader_options.quarantine_file = quarantine_file(options.out, "quarantine", processes.rank());
    trim_jsonl(loader_options.quarantine_file, progress.step - 1);  // its steps count from 0
    // Those of a run over more processes, which this one goes on from.
    for (int rank = processes.size(); processes.first(); ++rank) {
      const std::string left = quarantine_file(options.out, "quarantine", rank);
      if (!std::filesystem::exists(left)) break;
      trim_jsonl(left, progress.step - 1);
    }
  }
  loader = std::make_unique<Loader>(train, recipe.train, device_list(), loader_options);
  if (!resumed_from.empty()) Loader::resume_step(progress.loader, *loader);
  steps_per_epoch = loader->steps_per_epoch();
  total_steps = loader->end_step();
  processes.require_same_text(std::to_string(loader->state().fingerprint), "data");
  end_step = options.max_steps > 0 ? std::min(options.max_steps, total_steps) : total_steps;
}

void TrainSetup::make_resident() {
  if (measure().feed != FeedKind::resident) return;
  const int64_t bytes = ResidentBatches::batch_bytes(batch_shape());
  int64_t count = std::min(steps_per_epoch, end_step - progress.step);
  if (measure().resident_bytes > 0) count = std::min(count, measure().resident_bytes / bytes);
  for (const Replica& replica : replicas) {
    resident.push_back(std::make_unique<ResidentBatches>(*replica.device, batch_shape(), count));
  }
  notes.push_back(fmt::format(
      "feed: {} of an epoch's {} batches lie on each device ({:.1f} MiB) and are replayed; crops "
      "and flips stay those of their first time",
      count, steps_per_epoch, static_cast<double>(count * bytes) / (1 << 20)));
}

void TrainSetup::make_receipt() {
  if (!loader_options.digests || !writes()) return;
  ReceiptInfo info =
      receipt_info(*loader, train, options.recipe.train, loader_options, all_replicas());
  info.world = 1;  // process 0 is told what the others had
  info.version = options.version;
  info.libraries = options.libraries;
  receipt = std::make_unique<Receipt>(options.out, info, progress.step);
}

void TrainSetup::make_plan() {
  MemoryPlan eval_feed;
  if (eval) {
    const SubsetSource subset(*eval, options.limit_eval);
    eval_feed = evaluation_memory(subset, device_list(), rows, eval_options(1));
  }
  planned_bytes = loader->memory_plan().total_bytes() + eval_feed.total_bytes() + state_copy_bytes;
  for (const Replica& replica : replicas) planned_bytes += replica.engine->planned_bytes();
  for (const auto& batches : resident) planned_bytes += batches->device_bytes();
  plan = plan_lines(*this, eval_feed);
  if (writes()) replace_file(options.out + "/config.json", config_text(*this));
}

std::string quarantine_file(const std::string& folder, const std::string& name, int rank) {
  const std::string part = rank == 0 ? "" : fmt::format(".rank{}", rank);
  return fmt::format("{}/{}{}.jsonl", folder, name, part);
}

const MeasureHooks& TrainSetup::measure() const {
  static const MeasureHooks nothing;
  return options.measure ? *options.measure : nothing;
}

EvalOptions TrainSetup::eval_options(int views) const {
  EvalOptions result;
  result.augment = options.recipe.eval;
  result.views = views;
  result.averaged = options.recipe.average.kind != AverageKind::none;
  result.feed = options.feed;
  result.feed.decode.pixels = PixelPolicy::exact;
  result.limit = options.limit_eval;
  result.processes = processes.group();
  return result;
}

BatchShape TrainSetup::batch_shape() const {
  const Size input = options.recipe.input;
  return {.rows = rows, .height = input.height, .width = input.width};
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
