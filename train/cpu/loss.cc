#include "train/cpu/loss.h"

#include <algorithm>
#include <cmath>

namespace stoker {
namespace {

struct CpuRowTarget {
  int own = 0, partner = 0;
  float own_share = 1;                // of the weight that label smoothing does not use
  const float* of_outputs = nullptr;  // instead: one for each output
};

CpuRowTarget target_of(const LossArgs& args, int row) {
  CpuRowTarget target;
  target.own = args.labels[row];
  target.partner = target.own;
  if (args.mix_labels != nullptr) {
    target.partner = args.mix_labels[row];
    target.own_share = args.mix_weights[row];
  }
  if (args.targets != nullptr) {
    target.of_outputs = args.targets + static_cast<int64_t>(row) * args.classes;
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

struct CpuRowResult {
  double loss = 0;
  double top1 = 0, top5 = 0;  // of a weight of 1
};

// Replaces the logits by their gradient, which is multiplied by `factor`.
CpuRowResult softmax_row(const LossArgs& args, const CpuRowTarget& target, float factor,
                         float* logits) {
  const int rank = rank_of(logits, args.classes, target.own);
  const float highest = *std::max_element(logits, logits + args.classes);
  double sum = 0;
  for (int k = 0; k < args.classes; ++k) sum += std::exp(logits[k] - highest);
  const auto log_sum = static_cast<float>(highest + std::log(sum));
  const float smooth = args.label_smoothing / static_cast<float>(args.classes);
  const float hard = 1.0f - args.label_smoothing;
  double loss = 0;
  for (int k = 0; k < args.classes; ++k) {
    float wanted = smooth;
    if (k == target.own) wanted += hard * target.own_share;
    if (k == target.partner) wanted += hard * (1.0f - target.own_share);
    const float log_probability = logits[k] - log_sum;
    loss -= static_cast<double>(wanted) * log_probability;
    logits[k] = factor * (std::exp(log_probability) - wanted);
  }
  return {loss, rank < 1 ? 1.0 : 0.0, rank < 5 ? 1.0 : 0.0};
}

CpuRowResult binary_row(const LossArgs& args, const CpuRowTarget& target, float factor,
                        float* logits) {
  const float outputs = static_cast<float>(args.classes);
  const auto is_label = [&](int label, int k) {
    return args.classes == 1 ? label == 1 : label == k;
  };
  const auto is_on = [&](int k) {
    return target.of_outputs != nullptr ? target.of_outputs[k] >= 0.5f : is_label(target.own, k);
  };
  double loss = 0;
  int right = 0;
  for (int k = 0; k < args.classes; ++k) {
    const float hard = target.of_outputs != nullptr
                           ? target.of_outputs[k]
                           : (is_label(target.own, k) ? target.own_share : 0.0f) +
                                 (is_label(target.partner, k) ? 1.0f - target.own_share : 0.0f);
    const float wanted = (1.0f - args.label_smoothing) * hard + args.label_smoothing / 2;
    const float z = logits[k];
    // log(1 + e^z) - wanted * z, without overflow
    loss +=
        std::max(z, 0.0f) - static_cast<double>(wanted) * z + std::log1p(std::exp(-std::abs(z)));
    right += (z > 0) == is_on(k);
    logits[k] = factor / outputs * (1.0f / (1.0f + std::exp(-z)) - wanted);
  }
  return {loss / outputs, right / static_cast<double>(outputs), right == args.classes ? 1.0 : 0.0};
}

}  // namespace

StepMetrics compute_loss(LossKind kind, const LossArgs& args, float* logits) {
  const auto row_of = kind == LossKind::binary ? binary_row : softmax_row;
  StepMetrics metrics;
  for (int row = 0; row < args.rows; ++row) {
    float* row_logits = logits + static_cast<int64_t>(row) * args.classes;
    const float weight = args.weights[row];
    if (weight == 0) {  // ignores the row, even if it has a NaN
      std::fill_n(row_logits, args.classes, 0.0f);
      continue;
    }
    const CpuRowResult result = row_of(args, target_of(args, row), weight * args.scale, row_logits);
    metrics.finite = metrics.finite && std::isfinite(result.loss);
    metrics.loss_sum += weight * result.loss;
    metrics.weight_sum += weight;
    metrics.top1 += weight * result.top1;
    metrics.top5 += weight * result.top5;
  }
  return metrics;
}

}  // namespace stoker
