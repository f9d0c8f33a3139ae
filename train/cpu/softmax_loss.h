// Softmax cross-entropy with label smoothing, row weights and mixed labels. Pure; any thread.
#pragma once

#include <cstdint>

#include "train/engine/engine.h"

namespace stoker {

struct LossArgs {
  int rows = 0;
  int classes = 0;
  float label_smoothing = 0;
  float scale = 1;                  // of the gradients
  const int32_t* labels = nullptr;  // (rows), all in [0, classes)
  const float* weights = nullptr;   // (rows)
  // (rows) the second label of each row, and the share of the first; or both null.
  const int32_t* mix_labels = nullptr;
  const float* mix_weights = nullptr;
};

// Replaces logits (rows, classes) by d(scale * sum_i weight_i * loss_i) / d(logits). A row's target
// is its label and, with mix_labels, its second one; top1 and top5 use the first.
StepMetrics softmax_loss(const LossArgs& args, float* logits);

}  // namespace stoker
