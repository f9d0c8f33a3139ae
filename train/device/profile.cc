#include "train/device/profile.h"

namespace stoker {
namespace {

// Returns the operations of a convolution's step; 0 for other steps.
double flops_of(const NetSpec& net, const ExecutionPlan& plan, const PlanStep& step, int rows) {
  const FusedNode& node = plan.nodes[step.node];
  const std::string name = step.name;
  if (name != "conv" && name != "conv_data" && name != "conv_weights") return 0;
  const Size& kernel = net.nodes[node.node].kernel;
  return 2.0 * rows * node.shape.height * node.shape.width * node.shape.channels * kernel.height *
         kernel.width * plan.nodes[node.input].shape.channels;
}

}  // namespace

std::vector<DeviceStepTime> time_steps(const NetSpec& net, const DeviceProgram& program, int rows,
                                       const DeviceRun& run, int runs, Device& device,
                                       Stream& stream) {
  const ExecutionPlan& plan = program.plan;
  std::vector<std::unique_ptr<Event>> marks;
  std::vector<DeviceStepTime> times;
  for (const PlanStep& step : plan.steps) {
    const FusedNode& node = plan.nodes[step.node];
    times.push_back({step.name, net.nodes[node.node].name, node.shape,
                     flops_of(net, plan, step, rows), step.bytes, 0});
    marks.push_back(device.make_event(true));
  }
  marks.push_back(device.make_event(true));
  for (int i = 0; i <= runs; ++i) {  // the first run loads lazily and does not count
    stream.record(*marks[0]);
    for (size_t s = 0; s < times.size(); ++s) {
      program.run(run, s, s + 1);
      stream.record(*marks[s + 1]);
    }
    marks.back()->synchronize();
    for (size_t s = 0; s < times.size() && i > 0; ++s) {
      times[s].ms += marks[s + 1]->elapsed_ms(*marks[s]) / runs;
    }
  }
  return times;
}

}  // namespace stoker
