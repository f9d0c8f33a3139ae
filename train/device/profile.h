// Times the steps of a device engine.
#pragma once

#include <string>
#include <vector>

#include "staging/device.h"
#include "train/device/program.h"

namespace stoker {

struct DeviceStepTime {
  std::string step;   // "conv_weights", "norm_back"
  std::string where;  // prefix of its parameters: "layer1.0.conv1"; "" if it has none
  NodeShape shape;    // of the node's output, one row
  double flops = 0;   // of convolutions
  int64_t bytes = 0;  // read and written in memory, as traffic.h counts
  double ms = 0;
};

// Returns the times of the steps of one micro-batch of `rows`, averaged over `runs`. There are
// pauses between the steps, so their sum is more than the time of the whole pass.
std::vector<DeviceStepTime> time_steps(const NetSpec& net, const DeviceProgram& program, int rows,
                                       const DeviceRun& run, int runs, Device& device,
                                       Stream& stream);

}  // namespace stoker
