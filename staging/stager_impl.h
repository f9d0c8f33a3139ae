// The implementation of Stager and DeviceBatch: the slots, and which thread may use them when.
// Internal to stager.cc and device_batch.cc. A slot's life: free -> busy (staged by the copying
// thread, then leased by the consumer) -> free when the lease ends; its device part is overwritten
// only after `consumed`, in stream order. A slot without its own memory leases the slab itself,
// which is returned to the ring in the same stream order, just before `consumed`.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "staging/mutex.h"
#include "staging/stager.h"

namespace stoker {

struct DeviceBatch::StagingSlot {
  Stager::Impl* stager = nullptr;
  std::unique_ptr<Memory> memory;          // the device part of a batch; null: the slab's is leased
  std::vector<std::byte> host_copy;        // ids, notes and header; empty: the slab's are leased
  const std::byte* device_part = nullptr;  // of the lease: from images_offset on
  const std::byte* host_part = nullptr;    // of the lease: from ids_offset on
  std::unique_ptr<Event> copied;           // on the copy stream: the batch is there
  std::unique_ptr<Event> consumed;         // on the compute stream: its last reader is done
  Step step = 0;                           // of the lease
  Stream* compute = nullptr;               // of the lease
  int64_t leased_ns = 0;                   // when it began; only with a Tracer
};

struct Stager::Impl {
  using Slot = DeviceBatch::StagingSlot;

  Impl(Device& on, PinnedRing& from, int slot_count, Step first_step, Step end_step, int in_place,
       Tracer* tracer, int traced_as, const RowEditor* editor);
  ~Impl();

  size_t index_of(Step step) const { return static_cast<size_t>(step - first) % slots.size(); }
  Slot& slot_of(Step step) { return slots[index_of(step)]; }

  Slab* take(Step step);
  bool stage(Stream& stream, Slot& slot, Step step);
  bool lend(Slot& slot, Step step);
  void enqueue(Stream& stream, Slot& slot, Step step, const Slab& slab);
  void return_slab(Stream& stream, Step step);
  std::atomic<bool>& is_out(Step step) { return out[static_cast<size_t>(step) % out.size()]; }
  int64_t copy_slab(Stream& stream, Slot& slot, const Slab& slab);
  void return_copied(Stream& stream, Step step, int64_t bytes);
  void fail(Stream& stream, std::exception_ptr error) noexcept;
  void copy_loop() noexcept;
  Slot* wait_for_slot(Step step);
  DeviceBatch next(Stream& compute);
  DeviceBatch next_inline(Stream& compute);
  bool wait_ready(int ms);
  void check_leases() const REQUIRES(mutex);
  void lease(Slot& slot, Stream& compute, int64_t occupancy);
  std::shared_ptr<Memory> keep(Slot& slot);
  void give_back(Slot& slot) noexcept;
  void mark_consumed(Slot& slot);

  // Constant after construction.
  Device& device;
  PinnedRing& ring;
  const BatchLayout layout;
  const Step first;
  const Step end;
  const bool threaded;   // false: next() takes the slab itself,
  const bool zero_copy;  // and leases it as it is, instead of a copy
  Tracer* const tracer;  // or null
  const int traced_as;
  const RowEditor* const editor;  // or null
  std::vector<Slot> slots;
  std::unique_ptr<Stream> copy_stream;  // null without a thread

  StageStats stats;
  // Start of the current copy, for the Tracer; used by the copying stream.
  int64_t copy_began_ns = 0;
  Step taken;                  // steps below have left the ring; used by the copying thread
  const Slab* held = nullptr;  // taken, but the consumer's stream refused it; next() uses it
  // Per slab of the ring: whether it was taken and is not returned yet. They return in any order.
  std::vector<std::atomic<bool>> out;

  mutable Mutex mutex;
  CondVar slot_freed;
  CondVar batch_staged;
  std::vector<char> busy GUARDED_BY(mutex);  // per slot: staged or leased
  Step staged GUARDED_BY(mutex);             // steps below are queued for copy
  Step handed_out GUARDED_BY(mutex);  // steps below were leased; changed only by the consumer
  int leases GUARDED_BY(mutex) = 0;
  bool loop_over GUARDED_BY(mutex) = false;  // no more batches will be staged
  bool closing GUARDED_BY(mutex) = false;

  std::jthread thread;  // last: it uses all of the above
};

}  // namespace stoker
