#include "train/cpu/softmax_loss.h"

#include <algorithm>
#include <cmath>

namespace stoker {
namespace {

struct RowTarget {
  int own = 0, partner = 0;
  float own_share = 1;  // of the weight that label smoothing does not use
};

RowTarget target_of(const LossArgs& args, int row) {
  RowTarget target;
  target.own = args.labels[row];
  target.partner = target.own;
  if (args.mix_labels != nullptr) {
    target.partner = args.mix_labels[row];
    target.own_share = args.mix_weights[row];
  }
  return target;
}

// Returns how many classes come before `label`; among equal logits the lower index is first.
int rank_of(const float* logits, int classes, int label) {
  int before = 0;
  for (int k = 0; k < classes; ++k) {
    before += logits[k] > logits[label] || (logits[k] == logits[label] && k < label);
  }
  return before;
}

// Replaces the logits by their gradient; returns the loss of the row.
double row_loss(const LossArgs& args, const RowTarget& target, float weight, float* logits) {
  const float highest = *std::max_element(logits, logits + args.classes);
  double sum = 0;
  for (int k = 0; k < args.classes; ++k) sum += std::exp(logits[k] - highest);
  const auto log_sum = static_cast<float>(highest + std::log(sum));
  const float smooth = args.label_smoothing / static_cast<float>(args.classes);
  const float hard = 1.0f - args.label_smoothing;
  const float factor = weight * args.scale;
  double loss = 0;
  for (int k = 0; k < args.classes; ++k) {
    float wanted = smooth;
    if (k == target.own) wanted += hard * target.own_share;
    if (k == target.partner) wanted += hard * (1.0f - target.own_share);
    const float log_probability = logits[k] - log_sum;
    loss -= static_cast<double>(wanted) * log_probability;
    logits[k] = factor * (std::exp(log_probability) - wanted);
  }
  return loss;
}

}  // namespace

StepMetrics softmax_loss(const LossArgs& args, float* logits) {
  StepMetrics metrics;
  for (int row = 0; row < args.rows; ++row) {
    float* row_logits = logits + static_cast<int64_t>(row) * args.classes;
    const RowTarget target = target_of(args, row);
    const float weight = args.weights[row];
    if (weight == 0) {  // ignores the row, even if it has a NaN
      std::fill_n(row_logits, args.classes, 0.0f);
      continue;
    }
    const int rank = rank_of(row_logits, args.classes, target.own);
    const double loss = row_loss(args, target, weight, row_logits);
    metrics.finite = metrics.finite && std::isfinite(loss);
    metrics.loss_sum += weight * loss;
    metrics.weight_sum += weight;
    metrics.top1 += rank < 1 ? weight : 0;
    metrics.top5 += rank < 5 ? weight : 0;
  }
  return metrics;
}

}  // namespace stoker
