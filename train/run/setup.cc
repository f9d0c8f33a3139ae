#include "train/run/setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <stdexcept>

#include "pipeline/augment/unmoved_targets.h"
#include "pipeline/cache/decoded_cache.h"
#include "pipeline/files/durable_file.h"
#include "pipeline/files/invalid_field.h"
#include "pipeline/measure_hooks.h"
#include "train/labels.h"
#include "train/run/batch_shape.h"
#include "train/run/metrics.h"
#include "train/run/options.h"

namespace stoker {
namespace {

// An engine on the CPU has besides: compiled kernels, tables of libraries, the allocator's holes.
// With this, the peaks of small and large nets lie just below what is expected.
constexpr int64_t kCompiledBytes = int64_t{20} << 20;

// Calls `make`, and where it needs more memory than there is, says whose share that was.
template <typename Make>
auto with_share(bool is_shared, const char* whose, const Make& make) {
  try {
    return make();
  } catch (const InvalidField& refused) {
    if (!is_shared || refused.field() != "memory") throw;
    throw InvalidField("train", "memory", refused.problem() + "; " + whose);
  }
}

ModelInfo model_info_of(const Recipe& recipe, const Source& train, const Source* eval) {
  ModelInfo info;
  info.recipe = recipe;
  const Labels labels = labels_of(train);
  info.class_names = labels.class_names;
  info.target = labels.target;
  info.classes = static_cast<int>(info.class_names.size());
  if (info.classes < 1) {
    throw std::invalid_argument("the training data at " + train.root() + " name no classes");
  }
  if (!info.target.empty() && recipe.train.mix.on()) {
    throw InvalidField(
        "recipe", "train.mix",
        " is on, but the samples have the target " + info.target + ", and only labels are mixed");
  }
  if (eval && labels_of(*eval) != labels) {
    throw std::invalid_argument(fmt::format(
        "training data at {} have {} classes, evaluation data at {} have {}, or other names",
        train.root(), info.classes, eval->root(), labels_of(*eval).class_names.size()));
  }
  return info;
}

}  // namespace

TrainSetup::TrainSetup(const Source& train_source, const Source* eval_source,
                       const TrainOptions& wanted, const EngineFactory& make_engine)
    : options(complete_options(wanted)),
      processes(wanted.processes),
      train(train_source, wanted.limit_train),
      eval(eval_source && eval_source->size() > 0 ? eval_source : nullptr) {
  if (train.size() < 1) throw std::invalid_argument("no training samples at " + train.root());
  require_same_options(options, processes);
  if (options.batch_auto) choose_largest_batch(make_engine);
  shape = cut_batch(options, processes.size());
  note(shape.notes);
  options.recipe.micro_batch_size = shape.micro_batch_size;
  model = model_info_of(options.recipe, train, eval);
  const std::string unmoved = unmoved_targets(train, options.recipe.train);
  if (!unmoved.empty()) note({unmoved});
  net = model.net();
  require_labels(train, net);
  if (eval) require_labels(SubsetSource(*eval, options.limit_eval), net);
  replicas = ReplicaSet(options, net, shape, processes, make_engine);
  require_rate_factors(options.recipe.optimizer, parameter_table(net));
  if (options.row_losses && !replicas[0].engine->gives_row_results()) {
    throw InvalidField("train", "row_losses",
                       ": this engine does not give the loss of each row; the CPU's does");
  }
  std::optional<InitialWeights> weights;
  if (!options.init.empty() && processes.is_rank0()) weights.emplace(options.init, net);
  plan_feed();
  if (processes.is_rank0()) require_kept_replicas(options, shape.replica_models);
  make_models();
  // Writes files from here on; everything was checked before that could be.
  saves = processes.all_reduce_any(make_folders());
  RunStart start =
      find_start(options, model, train, models, saves, weights ? &*weights : nullptr, processes);
  progress = start.progress;
  note(start.notes);
  make_loader();
  make_resident();
  make_receipt();
  restore_wire(start.states.front());
  for (size_t i = 0; i < replicas.size(); ++i) write_state(start.state_of(i), *replicas[i].engine);
  if (replicas.has_server()) write_state(start.state_of(0), replicas.owner());
  for (const TrainState& state : start.states) state_copy_bytes += state_bytes(state);
  if (options.recipe.average.kind == AverageKind::none) {
    const TrainState& state = start.states.front();
    const size_t engines = replicas.size() + (replicas.has_server() ? 1 : 0);
    unused_bytes = static_cast<int64_t>(engines * sizeof(float) *
                                        (state.parameters.size() + state.statistics.size()));
  }
  make_plan();
}

void TrainSetup::restore_wire(TrainState& state) {
  WireState* const wire = replicas.collective().wire();
  const std::string lost =
      fit_residuals(state, shape.all_replicas, wire ? wire->residual_floats() : 0);
  if (!lost.empty()) note({lost});
  if (wire) wire->restore(progress.step, state.residuals);
}

void TrainSetup::choose_largest_batch(const EngineFactory& make_engine) {
  const ModelInfo info = model_info_of(options.recipe, train, eval);
  const NetSpec planned = info.net();
  const int shares = processes.size() * options.replicas * options.accumulate;
  BatchChoice choice = choose_batch(
      {options, planned, make_engine, train.size(), shares, eval != nullptr, info.target_bytes()});
  // The process with the least memory decides.
  const int64_t rows_everywhere = -processes.all_reduce_max(-choice.rows);
  if (rows_everywhere < choice.rows) {
    choice.reason += fmt::format("; {} in another process", rows_everywhere);
  }
  options.recipe.batch = static_cast<int>(rows_everywhere * shares);
  note({fmt::format("batch {}, chosen: {}", options.recipe.batch, choice.reason)});
}

void TrainSetup::note(const std::vector<std::string>& more) {
  notes.insert(notes.end(), more.begin(), more.end());
}

void TrainSetup::make_models() {
  models.resize(static_cast<size_t>(shape.models));
  models.front().folder = checkpoint_folder(options.out);
  for (int i = 0; i < shape.replica_models; ++i) {
    RunModel& own = models[static_cast<size_t>(i)];
    own.of = fmt::format(" of replica {}", i);
    own.folder = checkpoint_folder(options.out, i);
    own.progress.replica = i;
    own.progress.replicas = shape.replica_models;
  }
}

// Returns whether this process writes checkpoints.
bool TrainSetup::make_folders() {
  if (options.out.empty()) return false;
  std::filesystem::create_directories(options.out);
  // The other processes write nothing before this process has told them where the run starts.
  if (writes()) lock = std::make_unique<RunLock>(options.out);
  const MeasureHooks& measure = measure_hooks(options);
  if (measure.feed != FeedKind::real || options.reduce == ReduceKind::none || measure.replay) {
    notes.push_back(
        "this run measures what is left of a step without its input or its communication: it "
        "writes no checkpoint and no receipt");
    options.receipt = false;
    return false;
  }
  return writes();
}

void TrainSetup::plan_feed() {
  const Recipe& recipe = options.recipe;
  loader_options = feed_of(options);
  // The rest is the evaluation's.
  if (eval) loader_options.feed.memory = options.feed.memory / 4 * 3;
  loader_options.batch_size = shape.rows;
  loader_options.parts = shape.parts;
  loader_options.rank = processes.rank();
  loader_options.world = processes.size();
  loader_options.ring_depth = options.ring_depth;
  loader_options.slots = options.slots;
  loader_options.tracer = options.tracer;
  loader_options.measure = options.measure;
  plan_cache();
  Loader::check(train, recipe.train, replicas.devices(), loader_options);
  const MeasureHooks& measure = measure_hooks(options);
  const int64_t bytes =
      ResidentBatches::batch_bytes(batch_shape(recipe, shape.rows, model.target_bytes()));
  if (measure.feed != FeedKind::resident || measure.resident_bytes == 0 ||
      measure.resident_bytes >= bytes) {
    return;
  }
  throw InvalidField("train", "resident_bytes",
                     fmt::format(": a budget of {} bytes holds no batch of {} bytes",
                                 measure.resident_bytes, bytes));
}

// A cache of decoded pictures serves each of the two feeds whose recipe allows it.
void TrainSetup::plan_cache() {
  if (!options.feed.cache) return;
  const Recipe& recipe = options.recipe;
  no_train_cache = decoded_cache_refusal(train, recipe.train, options.feed.decode);
  if (eval) {
    no_eval_cache = decoded_cache_refusal(SubsetSource(*eval, options.limit_eval), recipe.eval,
                                          eval_options(1).feed.decode);
  }
  if (!no_train_cache.empty() && (!eval || !no_eval_cache.empty())) {
    throw InvalidField("train", "cache",
                       fmt::format(": of the training, it{}; of the evaluation, {}", no_train_cache,
                                   eval ? "it" + no_eval_cache : "there is none"));
  }
  if (!no_train_cache.empty()) loader_options.feed.cache = nullptr;
}

// Finds where the feed goes on.
void TrainSetup::place_feed() {
  const Recipe& recipe = options.recipe;
  if (!models.front().checkpoint.empty()) {
    Loader::check_state(progress.loader, train, recipe.train, loader_options, progress.batch);
    if (progress.batch != recipe.batch) go_on_with_another_batch();
  }
  loader_options.first_step = progress.loader.next_step;
  loader_options.grid = progress.loader.grid;
  more_steps = progress.step - progress.loader.next_step;
}

// The position in the samples counts: an epoch goes on with those that have not come.
void TrainSetup::go_on_with_another_batch() {
  const Recipe& recipe = options.recipe;
  LoaderState& state = progress.loader;
  SamplerOptions sampler{.samples = train.size(),
                         .rows = progress.batch,
                         .seed = options.seed,
                         .last_batch = recipe.last_batch,
                         .grid = state.grid,
                         .order = options.order};
  const Sampler before(sampler);
  constexpr int64_t kMaxSteps = int64_t{1} << 53;
  if (state.next_step < 0 || state.next_step > kMaxSteps) {
    throw std::invalid_argument(fmt::format("cannot resume from {}: its feed is at step {}",
                                            models.front().checkpoint, state.next_step));
  }
  const int64_t epoch = state.next_step / before.steps_per_epoch();
  const std::vector<int64_t> taken =
      before.taken(epoch, state.next_step % before.steps_per_epoch());
  sampler.rows = recipe.batch;
  sampler.grid = {};
  const Sampler now(sampler);
  const Continuation next = continue_at(now, epoch, taken);
  // A run that ends inside an epoch may have come to its end.
  state.next_step = std::min(next.step, steps_of(recipe.epochs, now.steps_per_epoch()));
  state.grid = next.grid;
  set_files_aside();
  const auto rate = [&](int batch) {
    return recipe.optimizer.effective_learning_rate(batch / shape.models);
  };
  notes.push_back(fmt::format(
      "goes on at sample {} of epoch {} with a global batch of {}, before it was {}: learning rate "
      "{:g} -> {:g}; the steps of one batch are not those of the other, so what the run wrote "
      "about its samples lies in {}",
      taken.front(), epoch, recipe.batch, progress.batch, rate(progress.batch), rate(recipe.batch),
      aside_folder(options.out, progress.step)));
}

// Receipts and lists of bad samples count steps of one size.
void TrainSetup::set_files_aside() const {
  if (options.out.empty()) return;
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(options.out)) {
    const std::string name = entry.path().filename().string();
    const bool of_samples = name.starts_with("receipt") || name.starts_with("quarantine") ||
                            name.starts_with("row_losses");
    const bool own =
        writes() || entry.path() == quarantine_file(options.out, "quarantine", processes.rank());
    if (of_samples && own && entry.is_regular_file()) files.push_back(entry.path());
  }
  const fs::path folder = aside_folder(options.out, progress.step);
  if (!files.empty()) fs::create_directories(folder);
  for (const fs::path& file : files) {
    const fs::path target = folder / file.filename();
    // If it is there already, this one is of a run from the same checkpoint that saved nothing.
    if (fs::exists(target)) {
      fs::remove(file);
    } else {
      fs::rename(file, target);
    }
  }
}

void TrainSetup::open_quarantine() {
  if (options.out.empty()) return;
  const int64_t last_step = progress.loader.next_step - 1;
  loader_options.quarantine_file = quarantine_file(options.out, "quarantine", processes.rank());
  trim_jsonl(loader_options.quarantine_file, last_step);  // steps count from 0 there
  // Trim also the files of further ranks, if this run resumes one that had more processes.
  for (int rank = processes.size(); processes.is_rank0(); ++rank) {
    const std::string left = quarantine_file(options.out, "quarantine", rank);
    if (!std::filesystem::exists(left)) break;
    trim_jsonl(left, last_step);
  }
}

void TrainSetup::make_loader() {
  place_feed();
  loader_options.digests = options.receipt && !options.out.empty();
  open_quarantine();
  loader = with_share(eval, "the training's feed has three quarters of it", [&] {
    return std::make_unique<Loader>(train, options.recipe.train, replicas.devices(),
                                    loader_options);
  });
  steps_per_epoch = loader->steps_per_epoch();
  total_feed_steps = loader->end_step();
  processes.require_same_text(std::to_string(loader->state().fingerprint), "data");
  const int64_t whole = total_feed_steps + more_steps;
  end_step = options.max_steps > 0 ? std::min(options.max_steps, whole) : whole;
}

void TrainSetup::make_resident() {
  const MeasureHooks& measure = measure_hooks(options);
  if (measure.feed != FeedKind::resident) return;
  const BatchShape batch = batch_shape(options.recipe, shape.rows, model.target_bytes());
  const int64_t bytes = ResidentBatches::batch_bytes(batch);
  int64_t count = std::min(steps_per_epoch, end_step - progress.step) * shape.parts;
  if (measure.resident_bytes > 0) count = std::min(count, measure.resident_bytes / bytes);
  for (const Replica& replica : replicas) {
    resident.push_back(std::make_unique<ResidentBatches>(*replica.device, batch, count));
  }
  notes.push_back(fmt::format(
      "feed: {} of an epoch's {} batches lie on each device ({:.1f} MiB) and are replayed; crops "
      "and flips stay those of their first time",
      count, steps_per_epoch * shape.parts, static_cast<double>(count * bytes) / (1 << 20)));
}

void TrainSetup::make_receipt() {
  if (!loader_options.digests || !writes()) return;
  ReceiptInfo info = receipt_info(*loader, train, options.recipe.train, loader_options,
                                  shape.all_replicas * shape.parts);  // those of a global batch
  info.world = 1;  // process 0 gets the notes of the others
  info.version = options.version;
  info.libraries = options.libraries;
  if (!options.subset.empty()) info.policies.emplace_back("subset", options.subset);
  receipt = std::make_unique<Receipt>(options.out, info, progress.loader.next_step);
}

void TrainSetup::make_plan() {
  MemoryPlan eval_feed;
  if (eval) {
    const SubsetSource subset(*eval, options.limit_eval);
    const std::vector<Device*> devices = replicas.devices();
    // All models have feeds alike.
    const auto feeds = static_cast<size_t>(shape.local_models);
    eval_feed = with_share(true, "the evaluation's feeds have a quarter of it", [&] {
      return evaluation_memory(subset, std::span(devices).first(devices.size() / feeds), shape.rows,
                               eval_options(1));
    });
    for (int64_t* bytes :
         {&eval_feed.ring_bytes, &eval_feed.slot_bytes, &eval_feed.scratch_bytes,
          &eval_feed.frame_bytes,
          &eval_feed.expected_bytes}) {  // a source's own and a cache are there once
      *bytes *= static_cast<int64_t>(feeds);
    }
  }
  int64_t rest = 0;
  for (const Replica& replica : replicas) rest += replica.engine->planned_bytes();
  if (replicas.has_server()) rest += replicas.owner().planned_bytes();
  for (const auto& batches : resident) rest += batches->device_bytes();
  const bool on_host = replicas.devices()[0]->host_accessible();
  if (on_host) rest += kCompiledBytes;
  planned_bytes =
      loader->memory_plan().total_bytes() + eval_feed.total_bytes() + state_copy_bytes + rest;
  const auto host_part = [&](const MemoryPlan& feed) {
    return feed.expected_bytes - (on_host ? 0 : feed.slot_bytes);
  };
  rest -= unused_bytes;
  // An evaluation ends before a checkpoint is written.
  expected_bytes = loader->memory_plan().expected_bytes +
                   std::max(eval_feed.expected_bytes, state_copy_bytes) + rest;
  expected_host_bytes = host_part(loader->memory_plan()) +
                        std::max(host_part(eval_feed), state_copy_bytes) + (on_host ? rest : 0);
  plan = make_run_plan(*this, eval_feed);
  if (writes()) replace_file(options.out + "/config.json", config_text(*this));
}

LoaderOptions feed_of(const TrainOptions& options) {
  LoaderOptions feed;
  feed.batch_size = options.recipe.batch;
  feed.seed = options.seed;
  feed.order = options.order;
  feed.last_batch = options.recipe.last_batch;
  feed.epochs = options.recipe.epochs;
  feed.feed = options.feed;
  return feed;
}

std::string aside_folder(const std::string& folder, int64_t step) {
  return fmt::format("{}/before_step_{:08}", folder, step);
}

std::string quarantine_file(const std::string& folder, const std::string& name, int rank) {
  const std::string part = rank == 0 ? "" : fmt::format(".rank{}", rank);
  return fmt::format("{}/{}{}.jsonl", folder, name, part);
}

EvalOptions TrainSetup::eval_options(int views) const {
  EvalOptions result;
  result.augment = options.recipe.eval;
  result.views = views;
  result.averaged = options.recipe.average.kind != AverageKind::none;
  result.feed = options.feed;
  result.feed.memory = options.feed.memory / 4 / std::max(shape.local_models, 1);
  result.feed.decode.pixels = PixelPolicy::exact;
  if (!no_eval_cache.empty()) result.feed.cache = nullptr;
  result.limit = options.limit_eval;
  if (shape.models == 1) result.processes = processes.group();
  if (result.feed.workers > 0) {  // the models' feeds share them
    result.feed.workers = std::max(result.feed.workers / shape.local_models, 1);
  }
  return result;
}

}  // namespace stoker
