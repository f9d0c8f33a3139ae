// How many bytes a training step moves in a device's memory, counted from the engine's own plan:
// every operand once per pass over it, as if no cache helped, without what libraries do in their
// workspaces. A batch-norm net is bound by these bytes, so they say, without a GPU, whether a
// change can help. Pure; any thread.
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

// Of one step of an engine with these options, all micro-batches, without a reduction over
// replicas; in the order in which the kinds first occur. Throws as node_shapes() does.
std::vector<DeviceTraffic> planned_traffic(const NetSpec& net, const EngineOptions& options,
                                           const DeviceTuning& tuning);

}  // namespace stoker
