// One convolution whose passes are planned when somebody asks for them: planning a pass that never
// runs, as the first convolution's input gradient, would time its plans for nothing.
// Owner: the step that runs it. Threads: as DeviceConv.
#pragma once

#include <memory>

#include "train/cuda/conv_graphs.h"
#include "train/device/ops.h"

namespace stoker {

// Makes plans and runs them.
class ConvPlanner {
 public:
  virtual ~ConvPlanner() = default;
  // The plan stays where it is as long as the planner.
  virtual const CudnnPlan& plan(const ConvShape& shape, ConvPass pass) = 0;
  // Of the forward convolution that sums up its output, too; null where none is worth it.
  virtual const CudnnPlan* with_statistics(const ConvShape& shape) = 0;
  virtual void execute(const CudnnPlan& plan, const CudnnDescriptor& operands) = 0;
};

// Plans a pass when its workspace or its implementation is asked for the first time, and the pass
// with sums when summing() is. Running one that nobody asked for, or asking for a gradient where
// there is no backward pass, throws std::logic_error. `planner` outlives the convolution.
std::unique_ptr<DeviceConv> make_lazy_conv(ConvPlanner& planner, const ConvShape& shape,
                                           bool backward);

}  // namespace stoker
