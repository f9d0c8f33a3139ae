#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "pipeline/cache/decoded_cache.h"
#include "pipeline/files/printable_name.h"
#include "train/engine/byte_text.h"
#include "train/model/recipe_json.h"
#include "train/run/options.h"
#include "train/run/setup.h"

namespace stoker {
namespace {

constexpr int64_t kSmallModel = 500'000;
constexpr int64_t kManyRows = 64;
// The first lines of a recipe: the model and its learning rate.
constexpr int kHeadOfRecipe = 2;
constexpr double kLargeFactor = 4;
// Leaving a smaller share of an epoch out is worth no line.
constexpr double kManyLeftOut = 0.05;

std::string counted(int64_t count, const char* what, const char* plural = "s") {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : plural);
}

std::string feed_line(const char* name, const MemoryPlan& plan) {
  std::string line = fmt::format("memory, {}: ring {}, slots {}, scratch up to {}", name,
                                 mebibytes(plan.ring_bytes), mebibytes(plan.slot_bytes),
                                 mebibytes(plan.scratch_bytes));
  if (plan.store_bytes > 0) {
    line += fmt::format(", samples from the store {}", mebibytes(plan.store_bytes));
  }
  if (plan.cache_bytes > 0) {
    line += fmt::format(", decoded pictures up to {}", mebibytes(plan.cache_bytes));
  }
  if (plan.frame_bytes > 0) {
    line += fmt::format(", frames up to {} (progressive JPEGs, PNGs, ... of max_pixels)",
                        mebibytes(plan.frame_bytes));
  }
  return line;
}

// How much will leave the store, and what a cache spares. Epochs of a part, or with an order of
// their own, are taken as that share of all samples.
void add_store_lines(const TrainSetup& setup, std::vector<std::string>& lines) {
  const std::optional<StoredBytes> stored = setup.train.storage().stored_bytes();
  if (!stored || stored->bytes == 0) return;
  const SharedOrder& order = setup.options.order;
  const int64_t length = order ? order->length() : setup.train.size();
  const double part = static_cast<double>(length) / static_cast<double>(stored->samples);
  const double epochs = static_cast<double>(setup.end_step - setup.progress.step) /
                        static_cast<double>(setup.steps_per_epoch);
  const double bytes = part * static_cast<double>(stored->bytes);
  lines.push_back(fmt::format(
      "store: {}{} will leave it, in {:.4g} epochs of {}{}{}", part != 1 ? "about " : "",
      decimal_bytes(part * stored->leaving(epochs)), epochs, decimal_bytes(bytes),
      stored->cache.empty()
          ? ""
          : fmt::format(": bytes x (1 + (epochs - 1) x (1 - f)), f = {:.4f}", stored->share()),
      stored->kept_bytes > 0
          ? fmt::format(", less the {} that the cache has",
                        decimal_bytes(part * static_cast<double>(stored->kept_bytes)))
          : ""));
  if (stored->cache.empty()) return;
  lines.push_back(fmt::format(
      "cache: {} for {} of {} samples, {}, of which {} are there{}",
      decimal_bytes(static_cast<double>(stored->cache_bytes)), stored->cache_samples,
      stored->samples, printable_name(stored->cache),
      decimal_bytes(static_cast<double>(stored->kept_bytes)),
      stored->problem.empty() ? "" : "; nothing more is kept: " + printable_name(stored->problem)));
}

// The part of each of the two feeds that a cache of decoded pictures keeps.
void add_decoded_lines(const TrainSetup& setup, std::vector<std::string>& lines) {
  if (!setup.options.feed.cache) return;
  const auto add = [&](const char* of, const std::string& refusal, const Source& source,
                       const AugmentSpec& augment, const FeedOptions& feed) {
    if (!refusal.empty()) {
      lines.push_back(fmt::format("cache, {}: none; it{}", of, printable_name(refusal)));
      return;
    }
    const DecodedCacheStats stats = feed.cache->stats(source, augment, feed.decode);
    const auto bytes = static_cast<double>(stats.places * stats.place_bytes);
    lines.push_back(fmt::format(
        "cache, {}: {} for {} of {} decoded pictures, {}, of which {} are there{}", of,
        decimal_bytes(bytes), stats.places, stats.samples,
        stats.folder.empty() ? "in memory" : printable_name(stats.folder), stats.found,
        stats.problem.empty() ? "" : "; nothing more is kept: " + printable_name(stats.problem)));
  };
  const Recipe& recipe = setup.options.recipe;
  add("training", setup.no_train_cache, setup.train, recipe.train, setup.loader_options.feed);
  if (!setup.eval) return;
  add("evaluation", setup.no_eval_cache, SubsetSource(*setup.eval, setup.options.limit_eval),
      recipe.eval, setup.eval_options(1).feed);
}

// The exchange of replicas, and its size.
std::string exchange_line(const TrainSetup& setup) {
  const TrainOptions& options = setup.options;
  const auto mib = [](int64_t bytes) {
    return fmt::format("{:.2f}", static_cast<double>(bytes) / (1 << 20));
  };
  std::string line = fmt::format("exchange: {}", to_string(options.reduce));
  if (setup.shape.replica_models > 0) {
    line += fmt::format(
        ", {} train a model each, on their shares of every batch, and send nothing; each is "
        "evaluated on all samples",
        counted(setup.shape.models, "replica"));
    return line + (setup.saves ? " and saved in " + options.out + "/replica_I" : "");
  }
  if (!sends_gradients(options.reduce)) return line;
  const Traffic traffic = setup.replicas.planned_traffic();
  line +=
      fmt::format(", gradients as {}; a replica sends {} and receives {} MiB in a step",
                  to_string(options.grad_wire), mib(traffic.gradients_sent + traffic.weights_sent),
                  mib(traffic.gradients_received + traffic.weights_received));
  const ParameterServer* const server = setup.replicas.server();
  return server ? line + "; the server is " + server->place() : line;
}

std::string device_note(const TrainSetup& setup) {
  if (!setup.replicas[0].engine->stream()) return "";
  const char* way = setup.replicas.norms_through_host() ? ", through the host's memory" : "";
  return fmt::format("{}; passes are queued without graphs", way);
}

// The samples that synchronised batch norms see, and how much replicas exchange for it: the mean
// and the variance of each channel, and two sums in the backward pass.
std::string norm_line(const TrainSetup& setup) {
  const int replicas = synchronised_replicas(setup.options);
  if (replicas == 1) return "batch norm: a single replica has nothing to synchronise with";
  const int64_t micro_batches =
      int64_t{setup.shape.parts} * setup.shape.rows / setup.shape.micro_batch_size;
  const int64_t numbers = 2 * total_count(statistics_table(setup.net)) * micro_batches;
  return fmt::format(
      "batch norm: synchronised, over {} samples: a micro-batch of each of {} replicas; a replica "
      "gives {:.2f} MiB to each of the others in a step{}",
      replicas * setup.shape.micro_batch_size, replicas,
      static_cast<double>(4 * numbers) / (1 << 20), device_note(setup));
}

// Large pictures may take what the feeds' limit leaves.
std::string memory_line(const TrainSetup& setup, const MemoryPlan& eval_feed) {
  const int64_t frames = setup.loader->memory_plan().frame_bytes + eval_feed.frame_bytes;
  const bool is_given = setup.options.feed.memory > 0;
  return fmt::format(
      "memory{}: {} expected, {} at most{}", setup.processes.size() > 1 ? " of each process" : "",
      mebibytes(setup.expected_bytes), mebibytes(setup.planned_bytes + frames),
      frames > 0 && !is_given ? " (a feed takes three quarters of what is free if pictures are "
                                "huge; --memory sets less)"
                              : "");
}

int64_t eval_samples(const TrainSetup& setup) {
  return setup.eval ? SubsetSource(*setup.eval, setup.options.limit_eval).size() : 0;
}

void add_memory_lines(const char* of, const std::string& text, std::vector<std::string>& lines) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) lines.push_back(fmt::format("memory, {}: {}", of, text.substr(at, end - at)));
    at = end + 1;
  }
}

void add_notes(const TrainSetup& setup, RunPlan& plan) {
  std::vector<std::string>& lines = plan.lines;
  const int64_t count = total_count(parameter_table(setup.net));
  const Recipe& recipe = setup.options.recipe;
  if (setup.shape.all_replicas > 1 && count < kSmallModel) {
    lines.push_back(fmt::format("note: {} has {} parameters; below {} data parallelism hardly pays",
                                setup.net.name, count, kSmallModel));
  }
  if (setup.shape.all_replicas > 1 && setup.shape.rows < kManyRows) {
    lines.push_back(fmt::format("note: {} samples per device are few; {} or more keep one busy",
                                setup.shape.rows, kManyRows));
  }
  if (recipe.last_batch == LastBatch::drop) {
    const SharedOrder& order = setup.options.order;
    const int64_t length = order ? order->length() : setup.train.size();
    const int64_t left_out = length - setup.steps_per_epoch * recipe.batch;
    if (left_out > 0) {
      const bool many = static_cast<double>(left_out) >= kManyLeftOut * static_cast<double>(length);
      (many ? lines : plan.details)
          .push_back(
              fmt::format("note: the last {} samples of an epoch's order are left out", left_out));
    }
  }
  const bool warms_up = recipe.schedule.warmup_epochs > 0 || recipe.schedule.warmup_steps > 0 ||
                        recipe.schedule.kind == ScheduleKind::triangle;
  const OptimizerSpec& optimizer = recipe.optimizer;
  const double factor =
      optimizer.effective_learning_rate(setup.shape.update_batch) / optimizer.learning_rate;
  if (optimizer.kind == OptimizerKind::sgd && factor >= kLargeFactor && !warms_up) {
    lines.push_back(fmt::format(
        "note: the rate is {:.3g} times that of a batch of {}, and training begins with it: a "
        "warm-up of 5 epochs is usual (Goyal et al. 2017)",
        factor, optimizer.lr_ref_batch));
  }
  if (recipe.schedule.warmup_epochs >= recipe.epochs) {
    lines.push_back(fmt::format("note: the warm-up of {:g} epochs is longer than the run",
                                recipe.schedule.warmup_epochs));
  }
  for (const std::string& note : setup.notes) lines.push_back("note: " + note);
}

}  // namespace

std::vector<std::string> RunPlan::all() const {
  std::vector<std::string> both = lines;
  both.insert(both.end(), details.begin(), details.end());
  return both;
}

RunPlan make_run_plan(const TrainSetup& setup, const MemoryPlan& eval_feed) {
  const TrainOptions& options = setup.options;
  RunPlan plan;
  std::vector<std::string>&lines = plan.lines, &details = plan.details;
  const std::vector<std::string> recipe = describe(options.recipe, setup.shape.update_batch);
  lines.assign(recipe.begin(), recipe.begin() + kHeadOfRecipe);
  details.assign(recipe.begin() + kHeadOfRecipe, recipe.end());
  lines.push_back(fmt::format(
      "data: {} training samples, {} for evaluation, {} classes; {} steps per epoch, {} in all",
      setup.train.size(), eval_samples(setup), setup.model.classes, setup.steps_per_epoch,
      setup.total_feed_steps));
  if (!options.subset.empty()) lines.push_back("subset: " + options.subset);
  if (options.order) lines.push_back("order: " + options.order->describe());
  add_store_lines(setup, lines);
  add_decoded_lines(setup, lines);
  lines.push_back(fmt::format(
      "model: {} parameters, {:.1f} million multiply-adds per image; {}",
      total_count(parameter_table(setup.net)), forward_flops(setup.net) / 2e6,
      run_precision(setup.options) == Precision::bf16 ? "bf16 with fp32 master weights" : "fp32"));
  const int processes = setup.processes.size();
  lines.push_back(fmt::format(
      "devices: {}{} x {}, {} and {} each{}",
      processes > 1 ? fmt::format("{} processes x ", processes) : "", options.replicas,
      counted(setup.shape.rows, "sample"),
      counted(setup.shape.rows / setup.shape.micro_batch_size, "micro-batch", "es"),
      counted(setup.shape.engine_threads, "thread"),
      setup.shape.parts > 1 ? fmt::format(", in {} parts per step", setup.shape.parts) : ""));
  (setup.shape.all_replicas > 1 ? lines : details).push_back(exchange_line(setup));
  if (options.sync_batch_norm) lines.push_back(norm_line(setup));
  if (setup.replicas.in_buckets()) {
    details.push_back(fmt::format("gradients: summed in buckets of {} while the backward pass runs",
                                  mebibytes(options.bucket_bytes)));
  }
  details.push_back(feed_line("feed", setup.loader->memory_plan()));
  if (setup.eval) details.push_back(feed_line("feed of the evaluation", eval_feed));
  add_memory_lines("engine", setup.replicas[0].engine->describe_memory(), details);
  if (setup.replicas.has_server()) {
    add_memory_lines("server", setup.replicas.owner().describe_memory(), details);
  }
  details.push_back(fmt::format("memory, checkpoints: {}, a copy of the state while one is written",
                                mebibytes(setup.state_copy_bytes)));
  lines.push_back(memory_line(setup, eval_feed));
  add_notes(setup, plan);
  return plan;
}

std::string config_text(const TrainSetup& setup) {
  const TrainOptions& options = setup.options;
  nlohmann::json json;
  json["version"] = options.version;
  json["libraries"] = options.libraries;
  json["recipe"] = recipe_to_json(options.recipe);
  json["data"] = {{"train", printable_name(setup.train.root())},
                  {"train_samples", setup.train.size()},
                  {"eval", setup.eval ? printable_name(setup.eval->root()) : ""},
                  {"eval_samples", eval_samples(setup)},
                  {"classes", setup.model.class_names}};
  if (!options.subset.empty()) json["data"]["subset"] = options.subset;
  if (options.order) json["data"]["order"] = options.order->describe();
  for (const auto& [name, value] : options.data_options) {
    json["data"]["options"][name].push_back(printable_name(value));
  }
  json["devices"] = options.replicas;
  json["processes"] = setup.processes.size();
  json["accumulate"] = options.accumulate;
  json["sync_batch_norm"] = options.sync_batch_norm;
  const Traffic traffic = setup.replicas.planned_traffic();
  json["reduce"] = to_string(options.reduce);
  if (setup.shape.replica_models > 0) json["models"] = setup.shape.models;
  json["grad_wire"] = to_string(options.grad_wire);
  json["bytes_per_step"] = {{"gradients_sent", traffic.gradients_sent},
                            {"gradients_received", traffic.gradients_received},
                            {"weights_sent", traffic.weights_sent},
                            {"weights_received", traffic.weights_received}};
  json["seed"] = options.seed;
  if (!options.init.empty()) json["init"] = printable_name(options.init);
  json["precision"] = run_precision(setup.options) == Precision::bf16 ? "bf16" : "fp32";
  json["checkpoint_steps"] = options.checkpoint_steps;
  json["keep_checkpoints"] = options.keep_checkpoints;
  json["limit_train"] = options.limit_train;
  json["limit_eval"] = options.limit_eval;
  json["max_steps"] = options.max_steps;
  json["threads"] = setup.shape.engine_threads * options.replicas;
  json["workers"] = options.feed.workers;
  json["io_threads"] = options.feed.io_threads;
  json["ring_depth"] = options.ring_depth;
  json["slots"] = options.slots;
  json["pixels"] = to_string(options.feed.decode.pixels);
  json["eval_pixels"] = to_string(setup.eval_options(1).feed.decode.pixels);
  json["exif"] = options.feed.decode.exif == ExifPolicy::apply ? "apply" : "ignore";
  json["max_pixels"] = options.feed.decode.max_pixels;
  json["max_bad"] = options.feed.max_bad;
  json["seek_index"] = options.feed.seek_index;
  json["plan"] = setup.plan.all();
  return json.dump(1) + "\n";
}

}  // namespace stoker
