// What the program's profiler and benches measure with: ways to take a part out of a run, and to
// change it while it runs. It is internal: the public options have a pointer to it, which is null
// for everybody else. Owner: whoever measures; it outlives the Loader and the Trainer. Threads:
// what is given is constant from their construction on.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

namespace stoker {

enum class FeedKind : uint8_t {
  real,
  synthetic,  // the first batches, one per slot, again and again: the cost of input is gone
  // The first epoch, or as much of it as resident_bytes hold, staged on the device before the first
  // step and replayed in its order: no decoding and no copy to the device, but other rows in every
  // step. Crops and flips stay as they were drawn for that epoch. real - resident is what input
  // costs; resident - synthetic is what other data cost.
  resident,
};

struct MeasureHooks {
  // Given to a Loader, also to that of a Trainer.
  int spare_workers = 0;  // idle until limit_workers() lets them work

  // Given to a Trainer. Nothing is saved where something is left out.
  FeedKind feed = FeedKind::real;
  int64_t resident_bytes = 0;  // FeedKind::resident: of each device; 0: the whole epoch must fit
  // While true, steps see the batch before them again: what is left of a step without its input.
  const std::atomic<bool>* replay = nullptr;

  // Filled in by the constructor of the Loader: from now on at most so many of the workers and
  // spare workers fill rows, at least one; nothing without workers. The pixels stay the same. Any
  // thread may call it while the Loader lives.
  std::function<void(int workers)> limit_workers{};
  // Filled in by the constructor of the Trainer: writes replica 0's weights to the folder `runs`,
  // as a checkpoint of the run's first step. Throws what save_checkpoint() throws. REQUIRES: the
  // Trainer lives and run() is not running.
  std::function<void(const std::string& runs)> save_to{};
};

}  // namespace stoker
