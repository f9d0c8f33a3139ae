// Checks of a batch's targets, for engines and evaluation, and what an update needs.
#pragma once

#include <stdexcept>
#include <string>

#include "train/engine/engine.h"

namespace stoker {

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

// Returns whether an update needs the norms of tensors.
inline bool needs_norms(const EngineOptions& options) {
  return options.clips || options.optimizer == OptimizerKind::lars;
}

}  // namespace stoker
