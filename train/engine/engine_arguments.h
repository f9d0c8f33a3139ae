// What every engine refuses, in the same words. Internal to the engines.
#pragma once

#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>

#include "train/engine/engine.h"

namespace stoker {

// Throws std::logic_error in an engine that only evaluates.
inline void require_training(const EngineOptions& options, const char* what) {
  if (!options.training) {
    throw std::logic_error(std::string(what) + ": this engine was made for evaluation only");
  }
}

// And std::invalid_argument where there is not one update for each of `count` tensors.
inline void require_tensors(const EngineOptions& options, const char* what,
                            std::span<const TensorUpdate> tensors, size_t count) {
  require_training(options, what);
  if (tensors.size() != count) {
    throw std::invalid_argument(std::string(what) + ": " + std::to_string(tensors.size()) +
                                " tensors, not " + std::to_string(count));
  }
}

// Throws std::invalid_argument where forward() has not just the room it needs, or a view would
// leave the picture.
inline void require_forward(const EngineOptions& options, const NetSpec& net, const View& view,
                            std::span<const float> logits) {
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

}  // namespace stoker
