// The program of a device engine for one micro-batch: an execution plan and the operations of its
// steps. It is built once and run many times, with different pointers each time. Owner:
// DeviceEngine. Threads: the engine's.
#pragma once

#include "train/device/ops.h"
#include "train/device/tuning.h"
#include "train/graph/plan_builder.h"

namespace stoker {

// Device pointers of one run.
struct DeviceRun {
  std::byte* arena = nullptr;
  const BufferPlan* memory = nullptr;  // the plan's
  const float* parameters = nullptr;   // flat
  const std::byte* weights = nullptr;  // flat, in the net's precision
  const float* statistics = nullptr;
  LossRows rows;                        // training, like all below except logits
  const int64_t* position = nullptr;    // the first row's place in the run, for dropout
  float* gradients = nullptr;           // a gradient buffer
  std::byte* bf16_gradients = nullptr;  // flat, of the convolutions; null in fp32
  float* logits = nullptr;              // evaluation

  template <typename Number = void>
  Number* at(int buffer) const {
    return buffer < 0 ? nullptr : reinterpret_cast<Number*>(arena + memory->offsets[buffer]);
  }
};

struct DeviceProgram : ProgramOf<DeviceRun> {
  int64_t workspace_bytes = 0;  // the largest of a step
};

// If `ops` is null, the program has only a plan, in which each convolution's workspace has the
// limit's size. `norms` is where its batch norms in training meet those of other replicas, or null.
// `ops`, `layout` and, while it runs, `norms` must outlive the program.
DeviceProgram build_device_program(const NetSpec& net, const PlanOptions& options,
                                   const DeviceTuning& tuning, const GradientLayout& layout,
                                   DeviceOps* ops, DeviceNormExchange* norms = nullptr);

}  // namespace stoker
