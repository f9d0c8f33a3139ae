// Copies pinned slabs into device slots while the device works. This is the main header of
// staging/.
//
// The Stager takes slabs from a ring in step order and copies each into one of k slots on a copy
// stream, as soon as the slot's last reader is done (its `consumed` event), and releases the slab
// when the copy is done. next() leases the next slot in order. k = 0: there is no thread, and
// next() itself takes the slab. If the host can read the device's memory, next() leases the slab in
// place: nothing is copied, and the consumer's stream returns the slab to the ring after the work
// that was queued on the batch. Then only the ring buffers the feed, and `in_place` is the number
// of slabs that may be leased at once. Otherwise next() copies on the consumer's stream, into one
// slot, without overlap. A hand-over is by stream order and events only, never by a
// synchronisation. Owner: Loader, one per device. Threads: its own copy thread (k > 0); next() from
// ONE consumer.
#pragma once

#include <memory>

#include "staging/batch_layout.h"
#include "staging/device.h"
#include "staging/device_batch.h"
#include "staging/pinned_ring.h"
#include "staging/row_edits.h"
#include "staging/stage_stats.h"
#include "staging/tracer.h"

namespace stoker {

class Stager {
 public:
  static constexpr int kMaxSlots = 3;
  // Throws std::invalid_argument for slots outside 0..3 and in_place outside 1..capacity. `device`
  // and `ring` must outlive the stager. Serves steps [first_step, end_step). Spans go to `tracer`,
  // if it is not null, with the device number `traced_as`; it must outlive the stager. So must
  // `editor`, which is there if the ring's layout has edits: it edits a slot's rows behind their
  // copy, in the same stream, and the copy's span includes it. Throws std::invalid_argument for
  // edits of slabs that are leased in place.
  Stager(Device& device, PinnedRing& ring, int slots, Step first_step, Step end_step,
         int in_place = 1, Tracer* tracer = nullptr, int traced_as = 0,
         const RowEditor* editor = nullptr);
  // Stops the ring if it still runs; waits for running copies and for the slots' last readers.
  ~Stager();
  Stager(const Stager&) = delete;
  Stager& operator=(const Stager&) = delete;

  // Blocks until the next step's copy is queued. Returns an empty batch at end_step or after
  // stop(); rethrows the error given to ring.stop(), and a failed device's. After a
  // BorrowedStreamError the step can still be leased on another stream. REQUIRES: the consumer
  // holds fewer than max_leases() leases (aborts otherwise: with 0 or 1 slots, destroy a batch
  // before the next call), and not the one of max_leases() steps ago, whose slot this one needs.
  DeviceBatch next(Stream& compute);
  // Blocks for at most `ms` milliseconds. Returns whether next() would not wait for the feed now.
  // For consumers that have other things to do while they wait.
  bool wait_ready(int ms);
  int max_leases() const;  // slots, or in_place, or 1
  // Aborts if next() would: for a consumer that has to wait before it can call.
  void check_leases() const;

  int64_t device_bytes() const;  // memory held on the device; 0 if the slab itself is leased
  StageStats&
  stats();  // items = batches handed out; input wait = next() blocked; output wait = no free slot

 private:
  friend class DeviceBatch;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
