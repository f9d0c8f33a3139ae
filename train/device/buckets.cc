#include "train/device/buckets.h"

#include <algorithm>

namespace stoker {
namespace {

// Returns, per tensor, the number of steps after which its gradient is complete.
std::vector<size_t> steps_until_ready(const ExecutionPlan& plan, const GradientLayout& layout) {
  std::vector<size_t> ready(layout.tensors().size(), 0);
  for (size_t s = plan.forward_steps; s < plan.steps.size(); ++s) {
    const PlanStep& step = plan.steps[s];
    const FusedNode& node = plan.nodes[step.node];
    for (size_t t = 0; t < ready.size(); ++t) {
      const bool of_node = layout.tensors()[t].node == node.node;
      const bool writes =
          step.use == StepUse::both || (step.use == StepUse::parameters &&
                                        (step.tensor < 0 || step.tensor == static_cast<int>(t)));
      if (of_node && writes) ready[t] = s + 1;
    }
  }
  return ready;
}

// Finds the convolutions' chunks in the bucket's range; they are in the order of the buffer.
void find_chunks(const std::vector<TensorChunk>& chunks, DeviceBucket& bucket) {
  const auto first = std::ranges::lower_bound(chunks, bucket.range.begin, {}, &TensorChunk::offset);
  const auto last = std::ranges::lower_bound(chunks, bucket.range.end, {}, &TensorChunk::offset);
  bucket.first_chunk = static_cast<int>(first - chunks.begin());
  bucket.chunks = static_cast<int>(last - first);
}

}  // namespace

std::vector<DeviceBucket> plan_buckets(const ExecutionPlan& plan, const GradientLayout& layout,
                                       int64_t bytes) {
  const std::vector<size_t> ready = steps_until_ready(plan, layout);
  const std::vector<TensorChunk> chunks = layout.chunks(kChunkNumbers, true);
  std::vector<DeviceBucket> buckets;
  int64_t end = layout.numbers();
  int64_t gradients = 0;  // of the bucket
  size_t begin_step = 0, end_step = plan.forward_steps;
  for (int t = static_cast<int>(ready.size()) - 1; t >= 0; --t) {
    const LayoutTensor& tensor = layout.tensors()[t];
    gradients += tensor.count;
    end_step = std::max(end_step, ready[t]);
    const int64_t full = buckets.empty() ? std::min(bytes, kFirstBucketBytes) : bytes;
    const bool last = t == 0;
    const bool is_full = bytes > 0 && gradients * int64_t{sizeof(float)} >= full;
    if (!last && !(is_full && end_step > begin_step)) continue;
    if (last) end_step = plan.steps.size();
    if (end_step == begin_step) {  // the last bucket's steps complete it too
      buckets.back().range.begin = tensor.offset;
    } else {
      buckets.push_back({{tensor.offset, end}, begin_step, end_step, 0, 0});
    }
    find_chunks(chunks, buckets.back());
    end = tensor.offset;
    begin_step = end_step;
    gradients = 0;
  }
  return buckets;
}

}  // namespace stoker
