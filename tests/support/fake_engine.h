// A small engine for tests of what surrounds one: a linear classifier on the mean colour of an
// image, written plainly, with the parts, shards and states of the contract. It learns, it depends
// on every row's pixels, label and weight, and it can be told to fail.
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
  int totals_lag = 0;          // tells totals this many updates late, as an engine that queues does
  std::atomic<int64_t>* steps = nullptr;  // counts forward_backward calls
};

// The classifier's weights are the first classes * 4 parameters of `net`; the others stay as they
// are. The statistics follow the mean colours of the shards.
std::unique_ptr<Engine> make_fake_engine(const NetSpec& net, const EngineOptions& options,
                                         const FakeEngineFaults& faults = {});

}  // namespace stoker
