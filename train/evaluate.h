// Computes the accuracy of a model over a source. Every sample counts exactly once, or as often as
// an order has it, for any number of devices, processes, rows and workers.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/loader_types.h"
#include "train/collective/process/process_group.h"
#include "train/engine/engine.h"

namespace stoker {

// Plain numbers: processes send them.
struct EvalFigures {
  // Shares of `samples` for which fewer than 1 / 5 logits are larger than the label's. With a
  // binary loss: the share of all outputs, and of samples with all of their outputs, that are on
  // the right side of 0.
  double top1 = 0, top5 = 0;
  double loss = 0;  // mean cross-entropy, no label smoothing; binary: the mean over outputs, too
  int64_t samples = 0;  // that were counted
  int64_t bad = 0;      // could not be read or decoded: not counted
  double seconds = 0;
  double images_per_second = 0;
  bool complete = true;  // false: stopped before the end
};

struct EvalResult : EvalFigures {
  std::optional<DecodedCacheStats> cache{};  // of this process's feed; nullopt: it has none
};

struct EvalOptions {
  AugmentSpec augment;
  int views = 1;          // 1, 2 or 6 (train/model/recipe.h)
  bool averaged = false;  // take the engine's averaged weights
  FeedOptions feed;
  std::string quarantine_file;
  int64_t limit = 0;  // > 0: about this many samples, spread evenly over the source
  // If not null: instead of every sample once, the samples of epoch 0 of this order count, each as
  // often as it comes. It is for all samples, without a limit.
  SharedOrder order{};
  // When it becomes true, the evaluation ends early and returns a result with `complete` = false.
  const std::atomic<bool>* stop = nullptr;
  // The processes that share the work; all of them get the result. Null for a single process.
  ProcessGroup* processes = nullptr;
};

// Throws std::invalid_argument naming the first sample whose label is not a class of `net`, or
// targets that `net` does not learn. Without this check a device engine would only report a loss
// that is not finite.
void require_labels(const Source& source, const NetSpec& net);

// Evaluates on `engines`, one per device, which hold the same weights and have the same number of
// rows per batch. Runs one thread per engine. Throws what the Loader throws.
EvalResult evaluate(const Source& source, std::span<Engine* const> engines,
                    std::span<Device* const> devices, int rows, const EvalOptions& options);

// Returns what evaluate() allocates for its feed.
MemoryPlan evaluation_memory(const Source& source, std::span<Device* const> devices, int rows,
                             const EvalOptions& options);

struct EvalCheckpointOptions {
  // A checkpoint's folder, its model.safetensors, or a run's folder (its newest checkpoint is
  // taken).
  std::string checkpoint;
  std::vector<std::string> devices{"cpu:0"};  // of this process; one replica on each
  int rows = 0;                        // per device and step; 0: 250, or fewer for large images
  int threads = 0;                     // all engines together; 0: one per core
  int views = 0;                       // 0: the recipe's
  std::optional<Precision> precision;  // empty: the recipe's
  FeedOptions feed;
  std::string quarantine_file;
  int64_t limit = 0;
  SharedOrder order{};  // as in EvalOptions
  // The processes that share the work; they must be given the same options, and all get the result.
  // Null for a single process.
  ProcessGroup* processes = nullptr;
  int local_processes = 1;  // how many of them run on this machine and share its cores
};

// Loads a checkpoint and evaluates it; model, input size, normalisation and classes come from the
// checkpoint. Throws std::runtime_error if it cannot be read or if `source` has other classes.
EvalResult evaluate_checkpoint(const Source& source, const EvalCheckpointOptions& options);

}  // namespace stoker
