// A model of the feeder: the rate of a feed with given threads, slabs, slots and times. It is a
// discrete-event simulation of the rules of FeedGraph, ReadAhead, PinnedRing, Stager and a lockstep
// trainer, driven by measured service times. It answers "what if" there is one worker more, storage
// that costs nothing, a deeper ring.
//
//   slab free -> tickets in step order -> I/O thread + buffer -> worker -> last ticket commits
//                                      \-> (files in memory) --/
//   -> copy (one at a time, into a free slot) -> step (hold, then rest) -> slab and slot free
//
// All devices advance together, so they are modelled as one device whose batch is all of theirs. A
// pure function. Units: seconds.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace stoker {

struct FeedModel {
  int rows = 0;  // of a step, all devices
  int workers = 1;
  int io_threads = 0;  // 0: the workers read
  int ring_depth = 1;
  int slots = 0;            // > 0: a separate thread copies batches into so many slots
  bool zero_copy = true;    // with no slots: the slab itself is leased; false: next() copies it
  double cached_share = 0;  // share of the rows that are in memory, which no I/O thread reads
  // Times of one row each, drawn at random; filling includes reading a file that is in memory.
  std::vector<double> read_s;
  std::vector<double> fill_cpu_s;
  double cpu_speed = 1;  // CPU seconds that a worker gets per second of work, <= 1
  // CPU seconds per second that all workers get together; a limit if they outnumber the cores.
  double cores = std::numeric_limits<double>::infinity();
  // Times of one step each.
  std::vector<double> copy_s;
  std::vector<double> hold_s;  // from the batch's arrival until it is given back
  std::vector<double> rest_s;  // from then until the next batch is asked for
};

struct ModelledRun {
  double samples_per_second = 0;
  double step_s = 0;
  double input_wait_s = 0;  // per step, for a batch that is not filled yet
  double copy_wait_s = 0;   // per step, for a filled batch that is not copied yet
};

// Runs as many warm-up steps as fill the ring, and then `steps` steps. The same seed draws the same
// times. REQUIRES: rows, workers, ring_depth >= 1, and no empty list among those that are used.
ModelledRun run_model(const FeedModel& model, int steps, uint64_t seed);

}  // namespace stoker
