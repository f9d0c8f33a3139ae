#include "train/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "pipeline/loader.h"
#include "pipeline/source/subset_source.h"
#include "staging/allowed_cores.h"
#include "staging/error_text.h"
#include "staging/threads.h"
#include "train/checkpoint/checkpoint.h"
#include "train/engine/engine_arguments.h"
#include "train/labels.h"
#include "train/model/recipe.h"
#include "train/model/recipe_json.h"
#include "train/run/processes.h"
#include "train/run/replica.h"

namespace stoker {
namespace {

// The labels, weights and targets of a batch, on the host.
struct HostRows {
  explicit HostRows(int rows) : labels(rows), weights(rows) {}
  std::vector<int32_t> labels;
  std::vector<float> weights;
  std::vector<float> targets;  // (rows, classes); empty: the rows have labels
};

struct Score {
  double top1 = 0, top5 = 0, loss = 0;
  int64_t samples = 0;
  int64_t bad = 0;  // counted by the feed
  void add(const Score& other) {
    top1 += other.top1;
    top5 += other.top5;
    loss += other.loss;
    samples += other.samples;
    bad += other.bad;
  }
};

// Adds up the scores of all processes in rank order; every process gets the total.
Score over_processes(const Score& own, ProcessGroup* processes) {
  Score total;
  for (const Score& each : TrainProcesses(processes).all_gather(std::span<const Score>(&own, 1))) {
    total.add(each);
  }
  return total;
}

// Adds one sample to the score, given the logits of a binary loss and what they should say, from 0
// to 1: see compute_loss() for what the scores mean.
void score_binary(std::span<const float> logits, std::span<const float> wanted, Score& score) {
  size_t right = 0;
  double loss = 0;
  for (size_t k = 0; k < logits.size(); ++k) {
    const double z = logits[k];
    loss += std::max(z, 0.0) - wanted[k] * z + std::log1p(std::exp(-std::abs(z)));
    right += wanted[k] >= 0.5f ? z > 0 : z <= 0;
  }
  const auto outputs = static_cast<double>(logits.size());
  score.loss += loss / outputs;
  score.top1 += static_cast<double>(right) / outputs;
  score.top5 += right == logits.size();
  ++score.samples;
}

// Adds one sample to the score, given its logits (classes) of a softmax.
void score_softmax(std::span<const float> logits, int label, Score& score) {
  const float own = logits[label];
  int ahead = 0;  // a NaN counts as larger, so that it is never correct by accident
  float largest = own;
  for (size_t c = 0; c < logits.size(); ++c) {
    if (c != static_cast<size_t>(label)) ahead += !(logits[c] <= own);
    largest = std::max(largest, logits[c]);
  }
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  score.loss += std::log(sum) + largest - own;
  score.top1 += ahead < 1;
  score.top5 += ahead < 5;
  ++score.samples;
}

// Evaluates one replica's share.
class EvalReplica {
 public:
  EvalReplica(Engine& engine, Device& device, Loader& loader, int index, int rows,
              const EvalOptions& options, std::atomic<bool>& stopped)
      : engine_(engine),
        loader_(loader),
        index_(index),
        options_(options),
        stopped_(stopped),
        views_(eval_views(options.views)),
        classes_(engine.net().classes),
        own_stream_(engine.stream() ? nullptr : device.make_stream()),
        stream_(engine.stream() ? *engine.stream() : *own_stream_),
        host_(rows),
        logits_(static_cast<size_t>(rows) * classes_),
        sum_(logits_.size()) {}

  Score run() {
    Score score;
    while (!stop()) {
      const DeviceBatch batch = loader_.next(index_, stream_);
      if (!batch) break;
      stream_.copy(host_.labels.data(), batch.labels(), host_.labels.size() * sizeof(int32_t),
                   CopyKind::device_to_host);
      stream_.copy(host_.weights.data(), batch.weights(), host_.weights.size() * sizeof(float),
                   CopyKind::device_to_host);
      if (!batch.shape().target_bytes.empty()) {
        host_.targets.resize(host_.labels.size() * classes_);
        stream_.copy(host_.targets.data(), batch.target(0), host_.targets.size() * sizeof(float),
                     CopyKind::device_to_host);
      }
      stream_.synchronize();
      if (batch.header().valid > 0) add_batch(batch, score);
    }
    return score;
  }

 private:
  // The first replica asks for all. All processes have the same number of steps and stop after the
  // same one.
  bool stop() {
    if (index_ == 0) {
      const bool wanted = options_.stop && options_.stop->load();
      if (options_.processes ? all_reduce_max(*options_.processes, wanted) != 0 : wanted)
        stopped_ = true;
    }
    return stopped_;
  }

  void add_batch(const DeviceBatch& batch, Score& score) {
    std::fill(sum_.begin(), sum_.end(), 0.0f);
    for (const WeightedView& each : views_) {
      engine_.forward({batch.images(), batch.labels(), batch.weights()}, each.view,
                      options_.averaged, logits_);
      for (size_t i = 0; i < sum_.size(); ++i) sum_[i] += each.weight * logits_[i];
    }
    const NetSpec& net = engine_.net();
    if (!host_.targets.empty()) {
      BatchRows rows;
      rows.weights = host_.weights.data();
      rows.targets = host_.targets.data();
      require_targets(net, static_cast<int>(host_.labels.size()), rows);
    }
    for (size_t row = 0; row < host_.labels.size(); ++row) {
      if (host_.weights[row] <= 0) continue;
      const std::span<const float> logits = std::span(sum_).subspan(row * classes_, classes_);
      if (net.loss == LossKind::binary) {
        score_binary(logits, wanted(row), score);
      } else {
        score_softmax(logits, host_.labels[row], score);
      }
    }
  }

  // The targets of a row's outputs, for a binary loss.
  std::span<const float> wanted(size_t row) {
    if (!host_.targets.empty()) return std::span(host_.targets).subspan(row * classes_, classes_);
    const int label = host_.labels[row];
    one_label_.assign(classes_, 0.0f);
    if (classes_ == 1) {
      one_label_[0] = label == 1 ? 1.0f : 0.0f;
    } else {
      one_label_[static_cast<size_t>(label)] = 1.0f;
    }
    return one_label_;
  }

  Engine& engine_;
  Loader& loader_;
  const int index_;
  const EvalOptions& options_;
  std::atomic<bool>& stopped_;
  const std::vector<WeightedView> views_;
  const size_t classes_;
  const std::unique_ptr<Stream> own_stream_;
  Stream& stream_;
  HostRows host_;
  std::vector<float> logits_, sum_;  // (rows, classes)
  std::vector<float> one_label_;     // (classes)
};

LoaderOptions loader_options(const EvalOptions& options, int rows) {
  LoaderOptions loader;
  loader.batch_size = rows;
  if (options.processes) {
    loader.rank = options.processes->rank();
    loader.world = options.processes->size();
  }
  // A Loader that has an order must not be told to leave the shuffle out.
  loader.shuffle = options.order != nullptr;
  loader.order = options.order;
  loader.last_batch = LastBatch::pad;
  loader.epochs = 1;
  loader.feed = options.feed;
  loader.ring_depth = 2;
  loader.quarantine_file = options.quarantine_file;
  return loader;
}

// Returns the largest divisor of `rows` that gives each thread at least one micro-batch.
int micro_batch_size(int rows, int threads) {
  for (int candidate = std::max(1, rows / threads); candidate > 1; --candidate) {
    if (rows % candidate == 0) return candidate;
  }
  return 1;
}

// Returns 250 for images of 32x32, fewer for larger ones: about the same memory.
int default_rows(Size input) {
  const double pixels = static_cast<double>(input.width) * input.height;
  return std::clamp(static_cast<int>(250 * 1024 / pixels) / 2 * 2, 8, 250);
}

void check_classes(const ModelInfo& info, const Source& source) {
  const Labels labels = labels_of(source);
  if (Labels{info.target, info.class_names} == labels) return;
  const auto list = [](const std::vector<std::string>& names) {
    std::string text = std::to_string(names.size());
    for (size_t i = 0; i < std::min<size_t>(names.size(), 3); ++i) text += " " + names[i];
    return text;
  };
  throw std::runtime_error(
      fmt::format("the model knows other classes than the data at {}: {} ... against {} ...",
                  source.root(), list(info.class_names), list(labels.class_names)));
}

}  // namespace

MemoryPlan evaluation_memory(const Source& source, std::span<Device* const> devices, int rows,
                             const EvalOptions& options) {
  LoaderOptions loader = loader_options(options, rows);
  loader.quarantine_file.clear();
  const std::vector<Device*> list(devices.begin(), devices.end());
  return Loader(source, options.augment, list, loader).memory_plan();
}

void require_labels(const Source& source, const NetSpec& net) {
  if (!source.targets().empty()) {
    const auto outputs = static_cast<int>(labels_of(source).class_names.size());
    if (net.loss == LossKind::binary && outputs == net.classes) return;
    throw std::invalid_argument(
        fmt::format("{}: the samples have the target {}, which '{}' with {} outputs does not learn",
                    source.root(), source.targets().front().describe(), net.name, net.classes));
  }
  for (SampleId id = 0; id < source.size(); ++id) {
    const int label = source.label(id);
    if (label >= 0 && label < label_count(net)) continue;
    throw std::invalid_argument(fmt::format("{}: sample {} '{}' has label {}; '{}' has {} classes",
                                            source.root(), id, source.name(id), label, net.name,
                                            label_count(net)));
  }
}

EvalResult evaluate(const Source& source, std::span<Engine* const> engines,
                    std::span<Device* const> devices, int rows, const EvalOptions& options) {
  const SubsetSource subset(source, options.limit);
  require_labels(subset, engines[0]->net());
  const auto begin = std::chrono::steady_clock::now();
  Loader loader(subset, options.augment, {devices.begin(), devices.end()},
                loader_options(options, rows));
  std::vector<Score> scores(engines.size());
  std::atomic<bool> stopped{false};
  FirstError error;
  run_threads("evaluating", std::ssize(engines), [&](int64_t i) {
    try {
      scores[i] =
          EvalReplica(*engines[i], *devices[i], loader, static_cast<int>(i), rows, options, stopped)
              .run();
    } catch (...) {
      error.keep_current();
      // The abort comes first: the other threads fail because of what follows it, and the other
      // processes shall get the first error.
      if (options.processes) options.processes->abort(current_error_text());
      stopped = true;
      loader.stop();
    }
  });
  error.rethrow();

  Score own;
  for (const Score& score : scores) own.add(score);
  const LoaderStats stats = loader.stats();
  own.bad = stats.bad_samples;
  const Score total = over_processes(own, options.processes);
  EvalResult result;
  result.samples = total.samples;
  result.complete = !stopped;
  const int64_t positions = options.order ? options.order->length() : subset.size();
  result.bad = result.complete ? positions - total.samples : total.bad;
  const double count = static_cast<double>(std::max<int64_t>(total.samples, 1));
  result.top1 = total.top1 / count;
  result.top5 = total.top5 / count;
  result.loss = total.loss / count;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  result.images_per_second = static_cast<double>(total.samples) / result.seconds;
  result.cache = stats.cache;
  return result;
}

EvalResult evaluate_checkpoint(const Source& source, const EvalCheckpointOptions& options) {
  const LoadedModel model = load_model(options.checkpoint);
  check_classes(model.info, source);
  const auto replica_count = static_cast<int>(options.devices.size());
  if (replica_count < 1) throw std::invalid_argument("evaluate: no devices");
  Recipe recipe = model.info.recipe;
  if (options.precision) recipe.precision = options.precision;
  const int cores = usable_cores(options.local_processes);
  const int threads = std::max(1, (options.threads > 0 ? options.threads : cores) / replica_count);
  const int rows = options.rows > 0 ? options.rows : default_rows(recipe.input);

  EngineOptions engine_options;
  engine_options.rows = rows;
  engine_options.micro_batch_size =
      on_gpus(options.devices) ? rows : micro_batch_size(rows, threads);
  engine_options.nominal_rows = int64_t{rows} * replica_count;
  engine_options.precision =
      on_gpus(options.devices) && !recipe.precision ? Precision::bf16 : recipe.resolved_precision();
  engine_options.workers = threads;
  engine_options.mean = recipe.mean;
  engine_options.stddev = recipe.stddev;
  engine_options.training = false;
  std::vector<Replica> replicas;
  std::vector<Device*> device_list;
  std::vector<Engine*> engine_list;
  for (const std::string& name : options.devices) {
    const Replica& replica =
        replicas.emplace_back(make_replica(name, model.info.net(), engine_options));
    device_list.push_back(replica.device.get());
    engine_list.push_back(replica.engine.get());
    engine_list.back()->write(StateKind::parameters, model.parameters);
    engine_list.back()->write(StateKind::statistics, model.statistics);
  }

  TrainProcesses processes(options.processes);
  processes.require_same_text(
      fmt::format("{} {} {} {} {} {} {}", source.size(), options.limit, rows, replica_count,
                  options.views, recipe_to_json(recipe).dump(),
                  options.order ? options.order->describe() : ""),
      "checkpoint, data and options");

  EvalOptions eval;
  eval.processes = options.processes;
  eval.augment = recipe.eval;
  eval.views = options.views > 0 ? options.views : recipe.eval_views;
  eval.feed = options.feed;
  if (eval.feed.workers < 0) eval.feed.workers = cores;
  eval.quarantine_file = options.quarantine_file;
  eval.limit = options.limit;
  eval.order = options.order;
  return evaluate(source, engine_list, device_list, rows, eval);
}

}  // namespace stoker
