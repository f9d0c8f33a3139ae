// A small engine for tests of the code around engines: a linear classifier on the mean colour of an
// image, in plain code, with the parts, micro-batches and states of the contract. It learns,
// depends on every row's pixels, label and weight, and can fail on request.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "train/engine/engine.h"

namespace stoker {

struct FakeEngineFaults {
  int64_t nan_at_step = -1;    // this forward_backward (0-based, of the engine) gives a NaN loss
  int64_t throw_at_step = -1;  // this one throws std::runtime_error
  int metrics_lag = 0;         // returns totals this many updates late, like an engine that queues
  std::atomic<int64_t>* steps = nullptr;  // counts forward_backward calls
};

// The classifier's weights are the first classes * 4 parameters of `net`; the others do not change.
// The statistics follow the mean colours of the micro-batches.
std::unique_ptr<Engine> make_fake_engine(const NetSpec& net, const EngineOptions& options,
                                         const FakeEngineFaults& faults = {});

}  // namespace stoker
