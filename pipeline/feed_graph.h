// The flow graph that fills slabs: plans steps, reads, decodes and commits on its own threads.
// The only TBB code of stoker.
//
//   driver thread: wait_free(step) -> begin -> tickets -> fill node (workers)
//                                         I/O threads: read <-> |
//   fill node: rows into the slab, the last ticket of a slab commits it. Files that do not lie in
//   memory go through the I/O threads first, and come back.
//
// Design decisions (oneTBB 2021.8, each measured or seen):
// - The message is a ticket of 24 bytes; pixels never travel. Tickets hold several rows when rows
//   are small, because a message costs 0.1-0.8 us.
// - The workers are threads of ours that sit in an arena of their own, exactly `workers` of them:
//   TBB's own pool is shared by the process and ends at the number of cores, so that two loaders
//   would take each other's threads. A worker sits only while there are tickets: an idle TBB thread
//   spins for 0.7 ms before it sleeps, which a trainer on the same cores would pay at every step.
// - Workers read what lies in memory (Source::read_cached): handing a file over from another thread
//   costs as much again as reading it. While nothing lies in memory, tickets go to the I/O threads
//   at once, as early as they can.
// - I/O threads put into the fill node directly: with a buffer pool of their own they need nothing
//   that async_node's gateway would add.
// - No limiter_node: the ring's step credits bound what is under way.
// - Bodies never throw: what the environment throws (no memory) stops the rings with that error.
//
// Owner: Loader. Threads: stop() from any. Steady state: no allocation of ours per batch; TBB takes
// its messages from per-thread pools.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "pipeline/row_filler.h"
#include "staging/pinned_ring.h"

namespace stoker {

struct FeedGraphOptions {
  int workers = 1;        // >= 1
  int spare_workers = 0;  // more of them, which only limit_workers() sets to work
  int io_threads = 0;     // 0: the workers read everything
  Step first_step = 0;
  Step end_step = 0;
};

class FeedGraph {
 public:
  // filler and rings (one per device, all of one layout and depth) must outlive the graph.
  FeedGraph(RowFiller& filler, std::vector<PinnedRing*> rings, const FeedGraphOptions& options);
  ~FeedGraph();  // stops; waits for the rows under way
  FeedGraph(const FeedGraph&) = delete;
  FeedGraph& operator=(const FeedGraph&) = delete;

  // Stops the rings with `error`; rows not begun are left out.
  void stop(std::exception_ptr error = nullptr) noexcept;

  void limit_workers(int workers) noexcept;  // of MeasureHooks

  int rows_per_ticket() const;
  int64_t file_bytes() const;  // bound of the buffers that files are read into

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
