// The rest of arithmetic.h: loss, optimiser and statistics. Pure functions.
#pragma once

#include "train/device/arithmetic.h"

namespace stoker::device {

// --- loss ---

struct RowTarget {
  int own = 0, partner = 0;
  float own_share = 1;                // of the weight that label smoothing does not use
  const float* of_outputs = nullptr;  // instead: one for each output
};

STOKER_HOST_DEVICE inline RowTarget row_target(const LossShape& s, const LossRows& rows, int row) {
  const float* targets =
      rows.targets == nullptr ? nullptr : rows.targets + static_cast<int64_t>(row) * s.classes;
  return {rows.labels[row], rows.mix_labels[row], rows.mix_weights[row], targets};
}

// As label_count(): a single binary output has two labels.
STOKER_HOST_DEVICE inline bool valid_label(const LossShape& s, int label) {
  const int labels = s.kind == LossKind::binary && s.classes == 1 ? 2 : s.classes;
  return label >= 0 && label < labels;
}
STOKER_HOST_DEVICE inline bool valid_target(const LossShape& s, const RowTarget& t) {
  return t.of_outputs != nullptr || (valid_label(s, t.own) && valid_label(s, t.partner));
}

// Returns the target probability of class k.
STOKER_HOST_DEVICE inline float wanted_probability(const LossShape& s, const RowTarget& t, int k) {
  const float hard = 1.0f - s.label_smoothing;
  float wanted = s.label_smoothing / static_cast<float>(s.classes);
  if (k == t.own) wanted += hard * t.own_share;
  if (k == t.partner) wanted += hard * (1.0f - t.own_share);
  return wanted;
}

// Returns 1 if `label` turns on binary output k: its own, or, as label 1, a single one.
STOKER_HOST_DEVICE inline float turns_on(const LossShape& s, int label, int k) {
  return (s.classes == 1 ? label == 1 : label == k) ? 1.0f : 0.0f;
}

// One output of a binary loss, whose logit is z. A target that is not from 0 to 1 makes the loss
// NaN, so that the step does not count.
struct BinaryOutput {
  float loss, slope;  // d loss / d z
  int right;          // 1 if z is on the side of the row's first label, or of its target
};
STOKER_HOST_DEVICE inline BinaryOutput binary_output(const LossShape& s, const RowTarget& t, int k,
                                                     float z) {
  float hard, on;
  if (t.of_outputs != nullptr) {
    hard = t.of_outputs[k];
    on = hard >= 0.5f ? 1.0f : 0.0f;
    if (!(hard >= 0 && hard <= 1)) hard = float_of(0x7fc00000u);
  } else {
    on = turns_on(s, t.own, k);
    hard = on * t.own_share + turns_on(s, t.partner, k) * (1.0f - t.own_share);
  }
  const float wanted = (1.0f - s.label_smoothing) * hard + s.label_smoothing / 2;
  const float size = z < 0 ? -z : z;
  return {(z > 0 ? z : 0.0f) - wanted * z + log1pf(expf(-size)), sigmoid(z) - wanted,
          (z > 0) == (on > 0) ? 1 : 0};
}

// Returns 1 if class k comes before `label`; among equal logits the lower index is first.
STOKER_HOST_DEVICE inline int comes_before(float logit, int k, float label_logit, int label) {
  return logit > label_logit || (logit == label_logit && k < label) ? 1 : 0;
}

// The loss of one row.
struct RowResult {
  float loss = 0;
  float top1 = 0, top5 = 0;  // of a weight of 1; see compute_loss() (train/cpu/head_steps.cc)
};
STOKER_HOST_DEVICE inline RowResult softmax_result(float loss, int rank) {
  return {loss, rank < 1 ? 1.0f : 0.0f, rank < 5 ? 1.0f : 0.0f};
}
STOKER_HOST_DEVICE inline RowResult binary_result(const LossShape& s, float loss_sum, int right) {
  const auto outputs = static_cast<float>(s.classes);
  return {loss_sum / outputs, static_cast<float>(right) / outputs,
          right == s.classes ? 1.0f : 0.0f};
}

// The contribution of one row to the metrics.
struct SampleMetrics {
  float value[kStepMetrics];
};
STOKER_HOST_DEVICE inline SampleMetrics sample_metrics(float weight, const RowResult& row,
                                                       bool valid) {
  SampleMetrics t{};
  const auto at = [&t](StepMetric which) -> float& { return t.value[static_cast<int>(which)]; };
  if (!valid) {  // not a class: the step must not count
    at(StepMetric::finite) = -1;
    return t;
  }
  if (weight == 0) return t;
  at(StepMetric::loss) = weight * row.loss;
  at(StepMetric::weight) = weight;
  at(StepMetric::top1) = weight * row.top1;
  at(StepMetric::top5) = weight * row.top5;
  at(StepMetric::finite) = is_finite(row.loss) ? 0.0f : -1.0f;
  return t;
}

// Converts the sum over all rows (`finite`: minus the number of bad rows) to a micro-batch's
// metrics.
STOKER_HOST_DEVICE inline void finish_metrics(float* metrics) {
  float& finite = metrics[static_cast<int>(StepMetric::finite)];
  finite = finite < 0 ? 0.0f : 1.0f;
  metrics[static_cast<int>(StepMetric::micro_batches)] = 1.0f;
}

}  // namespace stoker::device
