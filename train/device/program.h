// The program of a device engine for one micro-batch: an execution plan and the operations of its
// steps. It is built once and run many times, with different pointers each time, as captured graphs
// if possible. Owner: DeviceEngine. Threads: the engine's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "train/device/ops.h"
#include "train/device/tuning.h"
#include "train/device/types.h"
#include "train/graph/lowering.h"
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

// Returns the shape of the convolution `nodes[index]`. A fully connected layer is a 1x1 convolution
// of one pixel that has all values of its input as channels: in memory, both are the same.
ConvShape conv_shape(const NetSpec& net, const std::vector<FusedNode>& nodes, int index, int rows,
                     Precision precision);

// Returns the shape of each convolution of a net once, in the order in which they run. Pure. Throws
// as node_shapes() does.
std::vector<ConvShape> conv_shapes(const NetSpec& net, const FusionRules& rules, int rows,
                                   Precision precision);

// Runs queued work as captured graphs if possible. If a capture fails, all work is queued without
// graphs from then on: slower, with the same results, and problem() says why.
class GraphRunner {
 public:
  GraphRunner(DeviceOps& ops, bool wanted) : ops_(ops), wanted_(wanted) {}

  // Runs `work`; if it is `ready` (it has loaded everything that it loads lazily), as a graph,
  // which is stored in `graph`.
  void run(std::unique_ptr<DeviceGraph>& graph, bool ready, const std::function<void()>& work);
  const std::string& problem() const { return problem_; }  // "" if there is none

 private:
  std::unique_ptr<DeviceGraph> capture(const std::function<void()>& work);

  DeviceOps& ops_;
  const bool wanted_;
  std::string problem_;
};

}  // namespace stoker
