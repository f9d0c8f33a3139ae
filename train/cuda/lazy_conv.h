// One convolution whose passes are planned on demand: planning a pass that never runs, like the
// first convolution's input gradient, would time its plans for nothing. Owner: the step that runs
// it. Threads: see DeviceConv.
#pragma once

#include <memory>

#include "train/cuda/conv_graphs.h"
#include "train/device/ops.h"

namespace stoker {

// Makes plans and runs them.
class ConvPlanner {
 public:
  virtual ~ConvPlanner() = default;
  // The reference is valid as long as the planner.
  virtual const CudnnPlan& plan(const ConvShape& shape, ConvPass pass) = 0;
  // Returns the plan of a forward convolution that also sums its output; null if none is faster.
  virtual const CudnnPlan* with_statistics(const ConvShape& shape) = 0;
  virtual void execute(const CudnnPlan& plan, const CudnnDescriptor& operands) = 0;
};

// Makes a convolution that plans a pass at the first call of workspace_bytes() or implementation()
// for it, and the pass with sums at the first call of summing(). Running a pass that was not
// planned, or planning a gradient without a backward pass, throws std::logic_error. `planner` must
// outlive the convolution.
std::unique_ptr<DeviceConv> make_lazy_conv(ConvPlanner& planner, const ConvShape& shape,
                                           bool backward);

}  // namespace stoker
