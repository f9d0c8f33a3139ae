// Argument checks that all engines share, and evaluation for targets. Internal to them.
#pragma once

#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "train/engine/engine.h"

namespace stoker {

// Throws std::invalid_argument for inconsistent options; the message begins with `who` and the net.
inline void require_options(const std::string& who, const NetSpec& net, const EngineOptions& o) {
  const auto reject = [&](const std::string& why) {
    throw std::invalid_argument(who + " for '" + net.name + "': " + why);
  };
  if (o.rows < 1 || o.micro_batch_size < 1 || o.rows % o.micro_batch_size != 0) {
    reject(std::to_string(o.rows) + " samples are not a multiple of " +
           std::to_string(o.micro_batch_size) + " samples per micro-batch");
  }
  if (o.nominal_rows < o.rows) {
    reject(std::to_string(o.nominal_rows) + " nominal samples are fewer than this replica's " +
           std::to_string(o.rows));
  }
  if (!(o.label_smoothing >= 0 && o.label_smoothing < 1)) {
    reject("label smoothing " + std::to_string(o.label_smoothing) + " is not in [0, 1)");
  }
  for (size_t c = 0; c < o.stddev.size(); ++c) {
    if (!(o.stddev[c] > 0)) {
      reject("the deviation of channel " + std::to_string(c) + " is " +
             std::to_string(o.stddev[c]) + "; it must be positive");
    }
  }
}

// Throws std::logic_error if the engine was made for evaluation only.
inline void require_training(const EngineOptions& options, const char* what) {
  if (!options.training) {
    throw std::logic_error(std::string(what) + ": this engine was made for evaluation only");
  }
}

// Throws std::logic_error if the engine was made for no batches.
inline void require_batches(const EngineOptions& options, const char* what) {
  if (options.batches) return;
  throw std::logic_error(std::string(what) + ": this engine was made for no batches");
}

// Throws as require_training() and require_batches() do, and std::invalid_argument for a part of a
// batch if the engine was not made for parts.
inline void require_batch(const EngineOptions& options, const BatchRows& batch) {
  require_training(options, "forward_backward");
  require_batches(options, "forward_backward");
  if (options.accumulates || (batch.first && batch.last)) return;
  throw std::invalid_argument("forward_backward: this engine takes only whole batches");
}

// Throws std::invalid_argument if the net does not learn targets.
inline void require_binary_loss(const NetSpec& net) {
  if (net.loss == LossKind::binary) return;
  throw std::invalid_argument("'" + net.name + "' learns one label of a row, not targets");
}

// Throws std::invalid_argument if the net does not learn targets, or a row that counts has another
// number than from 0 to 1. `targets` and `weights` of the batch are in host memory.
inline void require_targets(const NetSpec& net, int rows, const BatchRows& batch) {
  require_binary_loss(net);
  for (int64_t i = 0; i < int64_t{rows} * net.classes; ++i) {
    const float value = batch.targets[i];
    if (batch.weights[i / net.classes] == 0 || (value >= 0 && value <= 1)) continue;
    throw std::invalid_argument("row " + std::to_string(i / net.classes) + " has " +
                                std::to_string(value) + " as its target of class " +
                                std::to_string(i % net.classes) + "; it must be from 0 to 1");
  }
}

// Throws std::logic_error if the engine's optimizer has no second moments.
inline void require_second_moments(const EngineOptions& options) {
  require_training(options, "second moments");
  if (!has_second_moments(options.optimizer)) {
    throw std::logic_error("second moments: this engine was made for an optimizer without them");
  }
}

// Throws as require_training() does, and std::invalid_argument if there is not one update for each
// of `count` tensors.
inline void require_tensors(const EngineOptions& options, const char* what,
                            std::span<const TensorUpdate> tensors, size_t count) {
  require_training(options, what);
  if (tensors.size() != count) {
    throw std::invalid_argument(std::string(what) + ": " + std::to_string(tensors.size()) +
                                " tensors, not " + std::to_string(count));
  }
}

// Throws as require_tensors() does, and std::invalid_argument for an update that the engine was not
// made for.
inline void require_update(const EngineOptions& options, const UpdateArgs& args, size_t count) {
  require_tensors(options, "update", args.tensors, count);
  if (args.kind != options.optimizer) {
    throw std::invalid_argument("update: this engine was made for another optimizer");
  }
  if (args.clip_norm > 0 && !options.clips) {
    throw std::invalid_argument("update: this engine was not made to clip gradients");
  }
}

// Returns whether an update needs the norms of tensors.
inline bool needs_norms(const EngineOptions& options) {
  return options.clips || options.optimizer == OptimizerKind::lars;
}

// Throws std::logic_error if an update needs a gradient that was left out.
inline void require_gradients(std::span<const TensorUpdate> tensors,
                              const std::vector<bool>& left_out,
                              const std::vector<TensorInfo>& table) {
  for (size_t t = 0; t < tensors.size(); ++t) {
    if (left_out[t] && !tensors[t].frozen) {
      throw std::logic_error("update: '" + table[t].name +
                             "' was expected to be frozen; it has no gradient");
    }
  }
}

// Throws as require_batches() does, and std::invalid_argument if `logits` has the wrong size, or if
// the view's shift is as large as the image.
inline void require_forward(const EngineOptions& options, const NetSpec& net, const View& view,
                            std::span<const float> logits) {
  require_batches(options, "forward");
  const int64_t wanted = static_cast<int64_t>(options.rows) * net.classes;
  if (static_cast<int64_t>(logits.size()) != wanted) {
    throw std::invalid_argument("forward: room for " + std::to_string(logits.size()) +
                                " logits, not " + std::to_string(wanted));
  }
  if (std::abs(view.shift_x) >= net.input.width || std::abs(view.shift_y) >= net.input.height) {
    throw std::invalid_argument("forward: a shift by " + std::to_string(view.shift_x) + ", " +
                                std::to_string(view.shift_y) + " leaves the picture");
  }
}

inline bool is_statistics(StateKind kind) {
  return kind == StateKind::statistics || kind == StateKind::average_statistics;
}
inline bool is_average(StateKind kind) {
  return kind == StateKind::average || kind == StateKind::average_statistics;
}

// Throws std::invalid_argument if `given`, the caller's number of values, is not `held`.
inline void require_state(const char* what, size_t given, int64_t held) {
  if (static_cast<int64_t>(given) != held) {
    throw std::invalid_argument(std::string(what) + ": " + std::to_string(given) +
                                " numbers, not " + std::to_string(held));
  }
}

}  // namespace stoker
