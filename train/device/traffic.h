// Counts the bytes that a training step moves in a device's memory, from the engine's plan: every
// operand once per pass over it, as if there were no cache, without the libraries' workspaces.
// These bytes limit the speed of a net with batch norm, so they show without a GPU whether a change
// can help. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/device/tuning.h"
#include "train/engine/engine.h"
#include "train/model/net_spec.h"

namespace stoker {

struct DeviceTraffic {
  std::string step;  // "conv_weights", "norm_back", as DeviceStepTime names them; "input", "update"
  int64_t count = 0;  // steps of this kind
  int64_t bytes = 0;  // of all of them
};

// Returns the traffic of one step of an engine with these options, over all micro-batches, without
// a reduction over replicas, in the order in which the kinds first occur. Throws as node_shapes()
// does.
std::vector<DeviceTraffic> planned_traffic(const NetSpec& net, const EngineOptions& options,
                                           const DeviceTuning& tuning);

}  // namespace stoker
