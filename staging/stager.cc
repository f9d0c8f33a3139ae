#include "staging/stager.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include "staging/stager_impl.h"
#include "staging/threads.h"

namespace stoker {

Stager::Impl::Impl(Device& on, PinnedRing& from, int slot_count, Step first_step, Step end_step,
                   int in_place, Tracer* tracer_in, int traced_as_in, const RowEditor* editor_in)
    : device(on),
      ring(from),
      layout(from.layout()),
      first(first_step),
      end(end_step),
      threaded(slot_count > 0),
      zero_copy(!threaded && device.host_accessible()),
      tracer(tracer_in),
      traced_as(traced_as_in),
      editor(editor_in),
      slots(static_cast<size_t>(zero_copy ? in_place : std::max(slot_count, 1))),
      taken(first_step),
      out(static_cast<size_t>(from.capacity())),
      busy(slots.size()),
      staged(first_step),
      handed_out(first_step) {
  for (Slot& slot : slots) {
    slot.stager = this;
    slot.copied = device.make_event();
    slot.consumed = device.make_event();
    if (zero_copy) continue;
    slot.memory = device.allocate(layout.device_bytes(), MemoryKind::device);
    slot.host_copy.resize(layout.slab_bytes() - layout.ids_offset());
    slot.device_part = slot.memory->data();
    slot.host_part = slot.host_copy.data();
  }
  if (!threaded) return;
  copy_stream = device.make_stream();
  thread = start_thread("copies to a device", [this] { copy_loop(); });
}

Stager::Impl::~Impl() {
  ring.stop();
  {
    MutexLock lock(mutex);
    closing = true;
    if (leases > 0) {
      std::fprintf(stderr, "stoker: ~Stager: %d DeviceBatch still alive; destroy it first\n",
                   leases);
      std::abort();
    }
  }
  slot_freed.notify_one();
  if (thread.joinable()) thread.join();
  try {
    // A slot's memory may be freed only after its last reader; without a copy stream the event is
    // also recorded after the last slab's release.
    for (const Slot& slot : slots) slot.consumed->synchronize();
  } catch (...) {
    // A failed device keeps failing; fail() has already waited for what it still ran.
  }
  copy_stream.reset();  // waits for its work even if the events failed
  for (Step step = std::max(first, taken - ring.capacity()); step < taken; ++step) {
    if (is_out(step)) ring.release(step);
  }
}

// Returns null if the feed was stopped.
Slab* Stager::Impl::take(Step step) {
  // Without a copy thread this wait is the consumer's, in next().
  const SpanTimer timer(threaded ? tracer : nullptr, SpanKind::slab_wait, step, traced_as);
  Slab* slab = ring.take(step);
  if (slab == nullptr) return nullptr;
  taken = step + 1;
  is_out(step) = true;
  return slab;
}

// Takes step's slab and makes `slot` show it in place. Returns false if the feed was stopped.
bool Stager::Impl::lend(Slot& slot, Step step) {
  const Slab* slab = take(step);
  if (slab == nullptr) return false;
  slot.device_part = slab->base;
  slot.host_part = slab->base + layout.ids_offset();
  return true;
}

// Takes step's slab and queues its copy into `slot` on `stream`. Returns false if the feed was
// stopped. After a BorrowedStreamError the same step may be staged on another stream.
bool Stager::Impl::stage(Stream& stream, Slot& slot, Step step) {
  const Slab* slab = held != nullptr ? std::exchange(held, nullptr) : take(step);
  if (slab == nullptr) return false;
  try {
    enqueue(stream, slot, step, *slab);
  } catch (const BorrowedStreamError&) {
    held = slab;
    throw;
  } catch (...) {
    std::exception_ptr error = std::current_exception();
    fail(stream, error);
    std::rethrow_exception(error);
  }
  return true;
}

// Returns the bytes. Rows that are smaller than the layout's leave a gap behind the images, which
// is not copied if that is worth a second copy.
int64_t Stager::Impl::copy_slab(Stream& stream, Slot& slot, const Slab& slab) {
  constexpr size_t kWorthACopy = size_t{256} << 10;
  const size_t all = layout.device_bytes(), rest = layout.labels_offset();
  const size_t images = layout.images_bytes(*slab.header);
  const bool has_gap = rest - images >= kWorthACopy;
  const auto copy = [&](size_t first_byte, size_t end_byte) {
    stream.copy(slot.memory->data() + first_byte, slab.base + first_byte, end_byte - first_byte,
                CopyKind::host_to_device);
    return static_cast<int64_t>(end_byte - first_byte);
  };
  if (!has_gap) return copy(0, all);
  return copy(0, images) + copy(rest, all);
}

void Stager::Impl::enqueue(Stream& stream, Slot& slot, Step step, const Slab& slab) {
  std::memcpy(slot.host_copy.data(), slab.base + layout.ids_offset(), slot.host_copy.size());
  stream.wait(*slot.consumed);
  if (tracer) stream.call([this] { copy_began_ns = steady_now_ns(); });
  const int64_t copied = copy_slab(stream, slot, slab);
  if (editor) {
    const std::span edits(slab.edits, static_cast<size_t>(layout.shape().rows));
    editor->run(stream, layout, edits, slot.memory->data());
  }
  stream.record(*slot.copied);
  tracer ? return_copied(stream, step, copied) : return_slab(stream, step);
}

// Like return_slab(), and reports the copy to the Tracer. The stream has one copy at a time.
void Stager::Impl::return_copied(Stream& stream, Step step, int64_t bytes) {
  stream.call([this, step, bytes] {
    Span span;
    span.kind = SpanKind::copy;
    span.step = step;
    span.device = traced_as;
    span.begin_ns = copy_began_ns;
    span.end_ns = steady_now_ns();
    span.bytes = bytes;
    tracer->add(span);
    is_out(step) = false;  // before it may be taken again
    ring.release(step);
  });
}

// Queued after the slab's last reader in the same stream (the copy, or the consumer's work), so
// that no thread has to wait for it.
void Stager::Impl::return_slab(Stream& stream, Step step) {
  stream.call([this, step] {
    is_out(step) = false;  // before it may be taken again
    ring.release(step);
  });
}

// The device failed while work was queued on `stream`. Some of it may still be running, and must
// finish before the memory that it reads is freed.
void Stager::Impl::fail(Stream& stream, std::exception_ptr error) noexcept {
  ring.stop(std::move(error));
  try {
    stream.synchronize();
  } catch (...) {
    // A failed device keeps failing; the first error gives the reason.
  }
}

Stager::Impl::Slot* Stager::Impl::wait_for_slot(Step step) {
  MutexLock lock(mutex);
  char& is_busy = busy[index_of(step)];
  if (is_busy && !closing) {
    const SpanTimer timer(tracer, SpanKind::slot_wait, step, traced_as);
    int64_t start_ns = steady_now_ns();
    while (!closing && is_busy) slot_freed.wait(lock);
    stats.add_output_wait(steady_now_ns() - start_ns);
  }
  if (closing) return nullptr;
  is_busy = true;
  return &slot_of(step);
}

void Stager::Impl::copy_loop() noexcept {
  try {
    if (tracer) tracer->name_thread("copy thread " + std::to_string(traced_as));
    for (Step step = first; step < end; ++step) {
      Slot* slot = wait_for_slot(step);
      if (slot == nullptr || !stage(*copy_stream, *slot, step)) break;
      {
        MutexLock lock(mutex);
        staged = step + 1;
      }
      batch_staged.notify_one();
    }
  } catch (...) {
    ring.stop(std::current_exception());  // next() rethrows it from there
  }
  {
    MutexLock lock(mutex);
    loop_over = true;
  }
  batch_staged.notify_one();
}

void Stager::Impl::check_leases() const {
  const auto size = static_cast<Step>(slots.size());
  const size_t index = index_of(handed_out);
  const Slot& needed = slots[index];
  if (leases < size && !(zero_copy && busy[index])) return;
  std::fprintf(stderr,
               "stoker: Stager::next(step %lld): %d of %d slots are leased, the one that it needs "
               "by step %lld; destroy that DeviceBatch before asking for the next\n",
               static_cast<long long>(handed_out), leases, static_cast<int>(size),
               static_cast<long long>(needed.step));
  std::abort();
}

DeviceBatch Stager::Impl::next(Stream& compute) {
  MutexLock lock(mutex);
  check_leases();
  if (handed_out == end || ring.stopped()) return {};
  int64_t occupancy = staged - handed_out;
  if (occupancy == 0 && !loop_over) {
    int64_t start_ns = steady_now_ns();
    while (staged == handed_out && !loop_over) batch_staged.wait(lock);
    stats.add_input_wait(steady_now_ns() - start_ns);
  }
  if (ring.stopped() || staged == handed_out) return {};
  Slot& slot = slot_of(handed_out);
  lock.unlock();  // a stream may block when its queue is full
  compute.wait(*slot.copied);
  lease(slot, compute, occupancy);
  return DeviceBatch(&slot);
}

DeviceBatch Stager::Impl::next_inline(Stream& compute) {
  Step step = 0;
  {
    MutexLock lock(mutex);
    check_leases();
    step = handed_out;
  }
  if (step == end || ring.stopped()) return {};
  Slot& slot = slot_of(step);
  int64_t start_ns = steady_now_ns();
  bool running = zero_copy ? lend(slot, step) : stage(compute, slot, step);
  stats.add_input_wait(steady_now_ns() - start_ns);
  if (!running) return {};
  lease(slot, compute, 0);
  return DeviceBatch(&slot);
}

bool Stager::Impl::wait_ready(int ms) {
  MutexLock lock(mutex);
  if (handed_out == end) return true;
  const int64_t start_ns = steady_now_ns();
  bool ready = false;
  if (threaded) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
    while (staged == handed_out && !loop_over && batch_staged.wait_until(lock, until)) {
    }
    ready = staged > handed_out || loop_over;
  } else {
    const Step step = handed_out;
    lock.unlock();
    ready = ring.wait_ready(step, ms);
  }
  stats.add_input_wait(steady_now_ns() - start_ns);
  return ready;
}

void Stager::Impl::lease(Slot& slot, Stream& compute, int64_t occupancy) {
  slot.compute = &compute;
  if (tracer) slot.leased_ns = steady_now_ns();
  MutexLock lock(mutex);
  busy[index_of(handed_out)] = true;
  slot.step = handed_out++;
  ++leases;
  stats.add_item(occupancy);
}

// Takes the batch's memory out of the slot, which is given back afterwards.
std::shared_ptr<Memory> Stager::Impl::keep(Slot& slot) {
  if (zero_copy) return ring.give_away(slot.step);
  return std::move(slot.memory);
}

// Records the event after the last reader of the slot.
void Stager::Impl::mark_consumed(Slot& slot) {
  try {
    slot.compute->record(*slot.consumed);
  } catch (const BorrowedStreamError&) {
    // The stream may be gone while its work continues, and nothing else tells when the slot is
    // free.
    device.wait_for_everyone();
  }
}

void Stager::Impl::give_back(Slot& slot) noexcept {
  try {
    if (tracer) {
      Span span;
      span.kind = SpanKind::lease;
      span.step = slot.step;
      span.device = traced_as;
      span.begin_ns = slot.leased_ns;
      span.end_ns = steady_now_ns();
      tracer->add(span);
    }
    if (zero_copy) {
      // The slot's previous lease may still be in use on another stream: `consumed` of the last
      // lease must come after all of them.
      slot.compute->wait(*slot.consumed);
      return_slab(*slot.compute, slot.step);
    }
    mark_consumed(slot);
  } catch (...) {
    fail(*slot.compute, std::current_exception());  // a destructor cannot throw: next() throws it
  }
  // Notify with the lock held: after the unlock the Stager may be gone.
  MutexLock lock(mutex);
  busy[index_of(slot.step)] = false;
  --leases;
  slot_freed.notify_one();
}

Stager::Stager(Device& device, PinnedRing& ring, int slots, Step first_step, Step end_step,
               int in_place, Tracer* tracer, int traced_as, const RowEditor* editor) {
  if (slots < 0 || slots > kMaxSlots || first_step < 0 || end_step < first_step) {
    throw std::invalid_argument("Stager: " + std::to_string(slots) + " slots (0 to " +
                                std::to_string(kMaxSlots) + "), steps " +
                                std::to_string(first_step) + " to " + std::to_string(end_step));
  }
  if (in_place < 1 || in_place > ring.capacity()) {
    throw std::invalid_argument("Stager: " + std::to_string(in_place) +
                                " leases in place, must be 1 to the ring's " +
                                std::to_string(ring.capacity()) + " slabs");
  }
  const bool edits = ring.layout().shape().edits;
  if (edits != (editor != nullptr) || (edits && slots == 0 && device.host_accessible())) {
    throw std::invalid_argument("Stager: " + device.name() + " with " + std::to_string(slots) +
                                " slots: rows with edits need an editor, and memory of their own");
  }
  impl_ = std::make_unique<Impl>(device, ring, slots, first_step, end_step, in_place, tracer,
                                 traced_as, editor);
}

Stager::~Stager() = default;

DeviceBatch Stager::next(Stream& compute) {
  return impl_->threaded ? impl_->next(compute) : impl_->next_inline(compute);
}

void Stager::check_leases() const {
  MutexLock lock(impl_->mutex);
  impl_->check_leases();
}

bool Stager::wait_ready(int ms) { return impl_->wait_ready(ms); }

int Stager::max_leases() const { return static_cast<int>(impl_->slots.size()); }

int64_t Stager::device_bytes() const {
  if (impl_->zero_copy) return 0;
  return static_cast<int64_t>(impl_->slots.size() * impl_->layout.device_bytes());
}

StageStats& Stager::stats() { return impl_->stats; }

}  // namespace stoker
