// Devices that take batches at a given rate and do nothing with them. A feed is profiled against
// them where the accelerator that it is for is not there. A batch takes rows / rate seconds of
// sleep, so the feed has the cores for itself.
#pragma once

#include <atomic>
#include <vector>

#include "pipeline/loader.h"

namespace stoker {

struct ConsumerOptions {
  double rows_per_second = 0;  // of each device; above 0
  int rows = 0;                // of a batch
  Tracer* tracer = nullptr;
  const std::atomic<bool>* replay = nullptr;  // while true, the last batch is taken again
};

// Takes batches of all devices, a thread each, until the feed ends or is stopped. Blocks. Returns
// the steps that device 0 made. Throws what Loader::next throws.
int64_t consume(Loader& loader, const std::vector<Device*>& devices,
                const ConsumerOptions& options);

}  // namespace stoker
