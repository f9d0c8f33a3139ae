// A fixed ring of pinned slabs addressed by step: slab = step % capacity. The step number is the
// credit. Owner: Loader, one ring per device. Allocates everything in the constructor, and again
// only for slabs that are given away (host devices). Neither copyable nor movable. Threads: take()
// from ONE thread, in step order; everything else from any thread. Blocks, never spins. A slab's
// life: free -> begin(s) filling -> commit(s) ready -> take(s) copying -> release(s) free; a call
// that does not fit aborts with the step and the state. Steps count up from `first_step` without
// gaps.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "staging/batch_layout.h"
#include "staging/device.h"
#include "staging/row_edits.h"
#include "staging/stage_stats.h"

namespace stoker {

// A batch being filled or copied. Plain pointers into one pinned allocation; rows may be filled by
// different threads at the same time.
struct Slab {
  std::shared_ptr<Memory> memory;  // contains all of the following
  std::byte* base = nullptr;
  uint8_t* images = nullptr;  // (rows, height, width, 3) u8
  int32_t* labels = nullptr;  // (rows)
  float* weights = nullptr;   // (rows)
  // One per target column: (rows, target_bytes).
  std::vector<std::byte*> targets{};
  RowEdit* edits = nullptr;    // (rows); null if the layout has none
  SampleId* ids = nullptr;     // (rows)
  std::byte* notes = nullptr;  // (rows, note_bytes_per_row)
  BatchHeader* header = nullptr;
};

// Returns a slab whose parts are in memory that begins at `base`, and which it does not own.
// Nothing is written.
Slab slab_at(std::byte* base, const BatchLayout& layout);

class PinnedRing {
 public:
  // device must outlive the ring. Throws std::invalid_argument (capacity < 1), std::bad_alloc.
  PinnedRing(Device& device, const BatchLayout& layout, int capacity, Step first_step = 0);
  // REQUIRES: no slab is filling or copying (every begin() has its commit(), even after stop()).
  ~PinnedRing();
  PinnedRing(const PinnedRing&) = delete;
  PinnedRing& operator=(const PinnedRing&) = delete;

  // Blocks until step's slab is free (release(step - capacity) has returned); false after stop().
  bool wait_free(Step step);
  Slab& begin(Step step);  // REQUIRES: wait_free(step) returned true; aborts on a broken life cycle
  void commit(Step step);  // publishes all rows to take(step)
  Slab* take(Step step);   // blocks; nullptr after stop(); rethrows the error given to stop()
  // Blocks for at most `ms` milliseconds. Returns whether take(step) would not block now. For the
  // taker.
  bool wait_ready(Step step, int ms);
  void release(Step step);  // REQUIRES: nobody reads the slab any more
  // Gives the memory of a slab that was taken to the caller, for as long as it likes, also beyond
  // the ring's end. The slab continues with other memory: that of a slab that was given away and
  // came back, or fresh memory; after stop() it has none. release(step) is still required. Throws
  // std::bad_alloc, which changes nothing. REQUIRES: the device is host-accessible.
  std::shared_ptr<Memory> give_away(Step step);
  void stop(std::exception_ptr error = nullptr) noexcept;  // sticky; the first call wins
  bool stopped() const;  // true after stop(); rethrows the error given to it

  const BatchLayout& layout() const;
  int capacity() const;
  StageStats&
  stats();  // items = slabs taken; input wait = take blocked; output wait = wait_free blocked

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
