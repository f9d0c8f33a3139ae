// The losses of a head (LossKind), with label smoothing, row weights and mixed labels. Pure; any
// thread.
#pragma once

#include <cstdint>

#include "train/engine/engine.h"

namespace stoker {

struct LossArgs {
  int rows = 0;
  int classes = 0;
  float label_smoothing = 0;
  float scale = 1;                  // of the gradients
  const int32_t* labels = nullptr;  // (rows), all below label_count()
  const float* weights = nullptr;   // (rows)
  // binary only: (rows, classes), from 0 to 1, instead of labels. Or null.
  const float* targets = nullptr;
  // (rows) the second label of each row, and the share of the first; or both null.
  const int32_t* mix_labels = nullptr;
  const float* mix_weights = nullptr;
};

// Replaces logits (rows, classes) by d(scale * sum_i weight_i * loss_i) / d(logits). A row's target
// is its label and, with mix_labels, its second one; top1 and top5 use the first.
// softmax: smoothing gives the share s to all classes, s / classes each.
// binary: target 1 for the label's output, or label 1 of a single output, or the row's targets;
// smoothing moves targets to (1 - s) * t + s / 2, as in Keras. top1 is the share of outputs on the
// right side of 0 (above it for targets from 0.5 up); top5 counts the rows whose outputs are all
// right.
StepMetrics compute_loss(LossKind kind, const LossArgs& args, float* logits);

}  // namespace stoker
