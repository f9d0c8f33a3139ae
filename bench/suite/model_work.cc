#include "bench/suite/model_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "train/cuda/engine.h"
#include "train/device/buckets.h"

namespace stoker {
namespace {

// Multiply-adds of each node per image.
std::vector<double> costs_of(const NetSpec& net, const std::vector<TensorInfo>& tensors) {
  const std::vector<NodeShape> shapes = node_shapes(net);
  std::vector<double> costs(net.nodes.size(), 0);
  for (const TensorInfo& tensor : tensors) {
    if (tensor.kind != ParameterKind::conv_weight && tensor.kind != ParameterKind::linear_weight) {
      continue;
    }
    // Every weight takes part once in each pixel of the output.
    const NodeShape& shape = shapes[tensor.node];
    costs[tensor.node] += static_cast<double>(tensor.count) * shape.height * shape.width;
  }
  return costs;
}

}  // namespace

std::vector<BackwardPart> model_parts(const NetSpec& net, int64_t bucket_bytes) {
  if (bucket_bytes < 0) {
    throw std::invalid_argument(fmt::format("buckets of {} bytes", bucket_bytes));
  }
  const std::vector<TensorInfo> tensors = parameter_table(net);
  const std::vector<double> costs = costs_of(net, tensors);
  double all = 0;
  for (const double cost : costs) all += cost;
  std::vector<BackwardPart> parts;
  BackwardPart open{0, 0};
  int counted = static_cast<int>(net.nodes.size());  // the nodes from here on are in a part
  for (int t = static_cast<int>(tensors.size()) - 1; t >= 0; --t) {
    for (; counted > tensors[t].node; --counted) open.share += costs[counted - 1] / all;
    open.floats += tensors[t].count;
    const int64_t full = parts.empty() ? std::min(bucket_bytes, kFirstBucketBytes) : bucket_bytes;
    const bool is_full = bucket_bytes > 0 && open.floats * int64_t{sizeof(float)} >= full;
    if (t > 0 && !is_full) continue;
    parts.push_back(open);
    open = {0, 0};
  }
  return parts;
}

int64_t largest_gpu_batch(const NetSpec& net, int64_t memory_bytes, double slot_bytes_per_row) {
  EngineOptions options;
  options.precision = Precision::bf16;
  options.rows = options.micro_batch_size = 1;
  options.nominal_rows = 1;
  options.mean = options.stddev = {0.5f, 0.5f, 0.5f};
  return largest_cuda_batch(net, options, memory_bytes,
                            static_cast<int64_t>(std::ceil(slot_bytes_per_row)), 1);
}

}  // namespace stoker
