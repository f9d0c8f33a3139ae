// The flow graph that fills slabs: plans steps, reads, decodes and commits on its own threads. No
// other file of stoker uses TBB.
//
//   driver thread: wait_free(step) -> begin -> tickets -> fill node (workers)
//                                         I/O threads: read <-> |
//   fill node: fills rows of the slab; the last ticket of a slab commits it. Files that are not in
//   memory go through the I/O threads first, and come back.
//
// Design decisions (oneTBB 2021.8, each measured or observed):
// - The message is a ticket of 32 bytes, without pixels. A ticket has several rows when rows are
//   small, because a message costs 0.1-0.8 us, and whole pairs of rows that are mixed.
// - The workers are our own threads in an arena, exactly `workers` of them: TBB's own pool is
//   shared by the process and limited to the number of cores, so two loaders would take each
//   other's threads. A worker is in the arena only while there are tickets: an idle TBB thread
//   spins for 0.7 ms before it sleeps, which would slow a trainer on the same cores at every step.
// - Workers read files that are in memory (Source::read_cached): a hand-over from another thread
//   costs as much again as the reading. While no file is in memory, tickets go to the I/O threads
//   at once, as early as possible.
// - I/O threads put into the fill node directly: they have their own buffer pool, so they need
//   nothing that async_node's gateway would add.
// - Rows that somebody else fills (RowExchange) wait outside the graph, so that a worker does other
//   rows meanwhile. Whose turn a ticket is, is asked by whoever is about to read its samples, a
//   worker or an I/O thread, so that nothing is claimed before it is begun.
// - There is no limiter_node: the ring's step credits bound the steps under way.
// - Bodies never throw: an error of the environment (no memory) stops the rings with that error.
//
// Owner: Loader. Threads: stop() from any. Steady state: our code allocates nothing per batch; TBB
// takes its messages from per-thread pools.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "pipeline/exchange/row_exchange.h"
#include "pipeline/row/row_filler.h"
#include "staging/pinned_ring.h"

namespace stoker {

struct FeedGraphOptions {
  int workers = 1;        // >= 1
  int spare_workers = 0;  // additional ones, which work only after limit_workers()
  int io_threads = 0;     // 0: the workers read everything
  Step first_step = 0;
  Step end_step = 0;
  RowExchange* exchange = nullptr;  // by which others may fill rows, or null; outlives the graph
};

class FeedGraph {
 public:
  // filler and rings (one per device, all of one layout and depth) must outlive the graph.
  FeedGraph(RowFiller& filler, std::vector<PinnedRing*> rings, const FeedGraphOptions& options);
  ~FeedGraph();  // stops, and waits for the rows under way
  FeedGraph(const FeedGraph&) = delete;
  FeedGraph& operator=(const FeedGraph&) = delete;

  // Stops the rings with `error`; rows that were not begun are left out.
  void stop(std::exception_ptr error = nullptr) noexcept;

  void limit_workers(int workers) noexcept;  // see MeasureHooks

  int64_t file_bytes() const;  // upper bound of the buffers for files

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
