// Accuracy of a model over a source: every sample counted exactly once, for any number of devices,
// processes, rows and workers.
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

struct EvalResult {
  double top1 = 0, top5 = 0;  // shares of `samples`: fewer than 1 / 5 logits are larger
  double loss = 0;            // mean cross-entropy, no label smoothing
  int64_t samples = 0;        // that counted
  int64_t bad = 0;            // could not be read or decoded: not counted
  double seconds = 0;
  double images_per_second = 0;
  bool complete = true;  // false: stopped before the end
};

struct EvalOptions {
  AugmentSpec augment;
  int views = 1;          // 1, 2 or 6 (train/model/recipe.h)
  bool averaged = false;  // take the engine's averaged weights
  FeedOptions feed;
  std::string quarantine_file;
  int64_t limit = 0;  // > 0: about this many samples, spread evenly over the source
  // Once it is true the evaluation ends early, and its result says that it is incomplete.
  const std::atomic<bool>* stop = nullptr;
  // The processes that share the work, all of which get the result; null if this one is alone.
  ProcessGroup* processes = nullptr;
};

// Throws std::invalid_argument naming the first sample whose label is none of the classes of `net`:
// engines on devices could only say that the loss is not finite.
void require_labels(const Source& source, const NetSpec& net);

// `engines` hold the same weights, one per device, and have the same rows per batch. Runs one
// thread per engine. Throws what the Loader throws.
EvalResult evaluate(const Source& source, std::span<Engine* const> engines,
                    std::span<Device* const> devices, int rows, const EvalOptions& options);

// What evaluate() allocates for its feed.
MemoryPlan evaluation_memory(const Source& source, std::span<Device* const> devices, int rows,
                             const EvalOptions& options);

struct EvalCheckpointOptions {
  // A checkpoint's folder, its model.safetensors, or a run's folder, of which the newest is taken.
  std::string checkpoint;
  std::vector<std::string> devices{"cpu:0"};  // of this process, one replica on each
  int rows = 0;                        // per device and step; 0: 250, or fewer for large images
  int threads = 0;                     // of all engines together; 0: one per core
  int views = 0;                       // 0: the recipe's
  std::optional<Precision> precision;  // empty: the recipe's
  FeedOptions feed;
  std::string quarantine_file;
  int64_t limit = 0;
  // The processes that share the work, given the same options; all get the result. Null if this
  // one is alone.
  ProcessGroup* processes = nullptr;
  int local_processes = 1;  // how many of them run on this machine and share its cores
};

// Loads a checkpoint (model, input size, normalisation and classes come from it) and evaluates it.
// Throws std::runtime_error if it cannot be read or `source` has other classes.
EvalResult evaluate_checkpoint(const Source& source, const EvalCheckpointOptions& options);

}  // namespace stoker
