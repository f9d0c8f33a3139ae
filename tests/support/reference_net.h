// The engines' plain twin: interprets a NetSpec in double precision, one node after another, NCHW,
// with nothing fused, reused or blocked. Slow on purpose; values; any thread.
#pragma once

#include <vector>

#include "train/engine/engine.h"

namespace stoker {

struct ReferenceInput {
  const uint8_t* images = nullptr;  // (rows, H, W, 3) u8
  const int32_t* labels = nullptr;
  const float* weights = nullptr;
  const float* targets = nullptr;  // as in BatchRows, as the next two
  const int32_t* mix_labels = nullptr;
  const float* mix_weights = nullptr;
  int rows = 0;  // one micro-batch
  std::array<float, 3> mean{}, stddev{};
  float label_smoothing = 0;
  uint64_t seed = 0;  // of dropout
  int64_t position = 0;
};

struct ReferenceStep {
  std::vector<double> logits;      // (rows, classes)
  double loss_sum = 0;             // sum of weight * loss, of the last head
  std::vector<double> gradients;   // of the losses of all heads, parameter_table order
  std::vector<double> statistics;  // statistics_table order: batch means, biased batch variances
};

// Runs forward and backward of one micro-batch in training mode.
ReferenceStep reference_step(const NetSpec& net, const std::vector<double>& parameters,
                             const ReferenceInput& input);
// Returns only the loss of all heads, for finite differences.
double reference_loss(const NetSpec& net, const std::vector<double>& parameters,
                      const ReferenceInput& input);
// Returns logits in evaluation mode, with running statistics.
std::vector<double> reference_logits(const NetSpec& net, const std::vector<double>& parameters,
                                     const std::vector<double>& statistics,
                                     const ReferenceInput& input);

}  // namespace stoker
