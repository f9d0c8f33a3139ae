// The cost of a device engine's steps: their times on a device, and the bytes that they move by the
// engine's plan. Values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "staging/device.h"
#include "train/device/program.h"
#include "train/device/tuning.h"
#include "train/engine/engine.h"
#include "train/model/net_spec.h"

namespace stoker {

struct DeviceStepTime {
  std::string step;   // "conv_weights", "norm_back"
  std::string where;  // prefix of its parameters: "layer1.0.conv1"; "" if it has none
  NodeShape shape;    // of the node's output, one row
  double flops = 0;   // of convolutions
  int64_t bytes = 0;  // read and written in memory, as in DeviceTraffic
  double ms = 0;
};

// Returns the times of the steps of one micro-batch of `rows`, averaged over `runs`. There are
// pauses between the steps, so their sum is more than the time of the whole pass.
std::vector<DeviceStepTime> time_steps(const NetSpec& net, const DeviceProgram& program, int rows,
                                       const DeviceRun& run, int runs, Device& device,
                                       Stream& stream);

// Bytes that a training step moves in a device's memory: every operand once per pass over it, as if
// there were no cache, without the libraries' workspaces. They limit the speed of a net with batch
// norm, so they show without a GPU whether a change can help.
struct DeviceTraffic {
  std::string step;  // "conv_weights", "norm_back", as DeviceStepTime names them; "input", "update"
  int64_t count = 0;  // steps of this kind
  int64_t bytes = 0;  // of all of them
};

// Returns the traffic of one step of an engine with these options, over all micro-batches, without
// a reduction over replicas, in the order in which the kinds first occur. Pure; any thread. Throws
// as node_shapes() does.
std::vector<DeviceTraffic> planned_traffic(const NetSpec& net, const EngineOptions& options,
                                           const DeviceTuning& tuning);

}  // namespace stoker
