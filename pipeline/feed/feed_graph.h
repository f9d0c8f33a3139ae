// The flow graph that fills slabs: plans steps, reads, decodes and commits on its own threads. No
// other file of stoker uses TBB; README.md says why the graph is as it is.
//
//   driver thread: wait_free(step) -> begin -> tickets -> fill node (workers)
//                                         I/O threads: read <-> |
//   fill node: fills rows of the slab; the last ticket of a slab commits it. Files that are not in
//   memory go through the I/O threads first, and come back.
//
// Owner: Loader. Threads: stop() from any. Errors: bodies never throw; an error of the environment
// (no memory) stops the rings with that error. Steady state: our code allocates nothing per batch;
// TBB takes its messages from per-thread pools.
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
  MemoryBudget* large_files = nullptr;  // of those that are read ahead; null: no bound
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

  // Upper bound of the buffers for files that are read ahead, without MemoryShares::large_files.
  // `rows` of a slab, `slabs` of all rings.
  static int64_t file_bytes(const RowFiller& filler, const FeedGraphOptions& options, int rows,
                            int64_t slabs);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
