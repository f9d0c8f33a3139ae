// Emulated devices, which take batches at a given rate and do nothing with them. A feed is profiled
// against them if its accelerator is not available. A batch takes rows / rate seconds of sleep, so
// the feed has all the cores.
#pragma once

#include <atomic>
#include <vector>

#include "pipeline/loader.h"

namespace stoker {

struct ConsumerOptions {
  double samples_per_second = 0;  // of each device; above 0
  int rows = 0;                   // of a batch
  Tracer* tracer = nullptr;
  const std::atomic<bool>* replay = nullptr;  // while true, the last batch is taken again
};

// Takes the batches of all devices, with a thread for each, until the feed ends or is stopped.
// Blocks. Returns the number of steps of device 0. Throws what Loader::next throws.
int64_t consume(Loader& loader, const std::vector<Device*>& devices,
                const ConsumerOptions& options);

}  // namespace stoker
