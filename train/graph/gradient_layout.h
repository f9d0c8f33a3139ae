// The layout of an engine's flat fp32 buffers. Parameters, momenta, averages and gradients have the
// same order, that of parameter_table, and every tensor is aligned. A gradient buffer is [gradients
// | moments of the batch norms | step metrics]. There is one per micro-batch, and one for the
// reduced gradients, their sum over all micro-batches and replicas. The gaps are 0. Each engine
// chooses the order of a convolution's weights within their tensor. Pure; any thread. Offsets and
// counts are in floats.
#pragma once

#include <cstdint>
#include <vector>

#include "train/graph/lowering.h"

namespace stoker {

// Sums over a micro-batch, at the end of its gradient buffer, in this order; `finite` and
// `micro_batches` are 1 per micro-batch.
enum class StepMetric : uint8_t { loss, weight, top1, top5, finite, micro_batches, count };
constexpr int kStepMetrics = static_cast<int>(StepMetric::count);

struct StepMetrics;  // train/engine/engine.h

// Reads the metrics of a step from the end of the reduced gradients, kStepMetrics floats. The
// engine knows whether the gradients and the metrics are `finite`.
StepMetrics step_metrics_from(const float* metrics, bool finite);

struct LayoutTensor {
  int64_t offset = 0;  // aligned to kTensorAlignment
  int64_t count = 0;   // with the input's padding channels
  ParameterKind kind = ParameterKind::conv_weight;
  int node = -1;
};

// Floats of a gradient buffer that are no gradient's.
struct LayoutGap {
  int64_t offset = 0, count = 0;
};

// A chunk of one tensor.
struct TensorChunk {
  int64_t offset = 0;
  int count = 0, tensor = 0;
};

// A channel of a batch norm, for the running statistics.
struct StatisticChannel {
  int mean = 0, variance = 0;  // offsets in the statistics, and in a gradient buffer's moments
  float momentum = 0;
  float numbers = 0;  // values per channel and micro-batch: rows * height * width
};

class GradientLayout {
 public:
  static constexpr int64_t kTensorAlignment = 128;  // 256 bytes of bf16

  GradientLayout(const NetSpec& net, const FusionRules& rules);

  const NetSpec& net() const { return net_; }
  const std::vector<LayoutTensor>& tensors() const { return tensors_; }  // parameter_table order
  // Returns what lies between the tensors, in order.
  std::vector<LayoutGap> gaps() const;
  int tensor_of(int node, ParameterKind kind) const;      // -1: none
  int64_t offset_of(int node, ParameterKind kind) const;  // -1: none
  // Offset of the node's means in the statistics; its variances follow.
  int64_t statistics_of(int node) const;
  int64_t parameter_numbers() const { return moments_; }
  int64_t statistics_numbers() const { return statistics_numbers_; }

  // Offsets in a gradient buffer, and its size. The gradients are at its beginning.
  int64_t moments() const { return moments_; }  // in the order of the statistics
  int64_t metrics() const { return metrics_; }  // StepMetric
  int64_t numbers() const { return numbers_; }

  // Returns all tensors, in order, cut into chunks of at most `most` floats.
  std::vector<TensorChunk> chunks(int64_t most, bool convolutions_only = false) const;
  std::vector<StatisticChannel> statistic_channels(int rows) const;  // rows of a micro-batch

 private:
  const NetSpec net_;
  const std::vector<TensorInfo> statistics_;
  std::vector<LayoutTensor> tensors_;
  int64_t statistics_numbers_ = 0, moments_ = 0, metrics_ = 0, numbers_ = 0;
};

}  // namespace stoker
