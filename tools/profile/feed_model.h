// The feeder as a model: what a feed with given threads, slabs, slots and times would deliver. A
// discrete-event simulation of the same rules that FeedGraph, ReadAhead, PinnedRing, Stager and a
// lockstep trainer follow, driven by service times that were measured. It answers "what if": one
// worker more, storage for free, a deeper ring.
//
//   slab free -> tickets in step order -> I/O thread + buffer -> worker -> last ticket commits
//                                      \-> (files in memory) --/
//   -> copy (one at a time, into a free slot) -> step (hold, then rest) -> slab and slot free
//
// All devices advance together, so they are modelled as one whose batch is all of theirs. A pure
// function. Units: seconds.
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
  int slots = 0;            // > 0: copied by a thread of its own
  bool zero_copy = true;    // slots == 0: the slab itself is leased; else copied inside next()
  double cached_share = 0;  // of the rows: no I/O thread reads them
  // Of one row each, drawn at random; filling includes reading what lies in memory.
  std::vector<double> read_s;
  std::vector<double> fill_cpu_s;
  double cpu_speed = 1;  // of a worker: CPU seconds per second, <= 1
  // CPU seconds per second of all workers together, where there are more of them than cores.
  double cores = std::numeric_limits<double>::infinity();
  // Of one step each.
  std::vector<double> copy_s;
  std::vector<double> hold_s;  // from the batch's arrival until it is given back
  std::vector<double> rest_s;  // and until the next is asked for
};

struct ModelledRun {
  double rows_per_second = 0;
  double step_s = 0;
  double input_wait_s = 0;  // per step, for a batch that is neither filled nor copied
  double copy_wait_s = 0;   // per step, for one that is filled
};

// Runs `steps` steps after as many of warm-up as fill the ring. The same seed draws the same times.
// REQUIRES: rows, workers, ring_depth >= 1, no empty list among those that are used.
ModelledRun run_model(const FeedModel& model, int steps, uint64_t seed);

}  // namespace stoker
