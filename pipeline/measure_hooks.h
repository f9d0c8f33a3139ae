// Hooks with which the program's profiler and benches measure: they remove a part of a run, or
// change it while it runs. Internal: the public options have a pointer to it, which is null for all
// other users. Owner: the code that measures; it outlives the Loader and the Trainer. Threads: the
// inputs are constant after the construction of Loader and Trainer.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace stoker {

enum class FeedKind : uint8_t {
  real,
  synthetic,  // repeats the first batches, one per slot: removes the cost of input
  // Stages the first epoch, or as much of it as resident_bytes hold, on the device before the first
  // step, and replays it in order: no decoding and no copy to the device, but other rows in every
  // step. Crops and flips stay as they were drawn for that epoch. real - resident is the cost of
  // input; resident - synthetic is the cost of varying data.
  resident,
};
// Their names, in options and in results.
inline constexpr std::pair<const char*, FeedKind> kFeedKinds[] = {
    {"real", FeedKind::real}, {"synthetic", FeedKind::synthetic}, {"resident", FeedKind::resident}};

struct MeasureHooks {
  // For a Loader, also for that of a Trainer.
  int spare_workers = 0;  // idle until limit_workers() lets them work

  // For a Trainer. Nothing is saved if a part is left out.
  FeedKind feed = FeedKind::real;
  int64_t resident_bytes = 0;  // FeedKind::resident: per device; 0: the whole epoch must fit
  // While true, steps get the previous batch again: this measures a step without its input.
  const std::atomic<bool>* replay = nullptr;

  // Set by the constructor of the Loader. From the call on at most so many of the workers and spare
  // workers fill rows, at least one; it does nothing without workers. The pixels do not change. Any
  // thread may call it while the Loader lives.
  std::function<void(int workers)> limit_workers{};
  // Set by the constructor of the Trainer. Writes the weights of each model that this process
  // trains to a folder of its own below `runs`, as checkpoints of the run's first step. Throws what
  // save_checkpoint() throws. REQUIRES: the Trainer lives and run() is not running.
  std::function<void(const std::string& runs)> save_to{};
};

}  // namespace stoker
