#include "staging/pinned_ring.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "staging/mutex.h"

namespace stoker {

Slab slab_at(std::byte* base, const BatchLayout& layout) {
  Slab slab;
  slab.base = base;
  slab.images = reinterpret_cast<uint8_t*>(base + layout.images_offset());
  slab.labels = reinterpret_cast<int32_t*>(base + layout.labels_offset());
  slab.weights = reinterpret_cast<float*>(base + layout.weights_offset());
  for (size_t column = 0; column < layout.shape().target_bytes.size(); ++column) {
    slab.targets.push_back(base + layout.target_offset(column));
  }
  if (layout.shape().edits) {
    slab.edits = reinterpret_cast<RowEdit*>(base + layout.edits_offset());
  }
  slab.ids = reinterpret_cast<SampleId*>(base + layout.ids_offset());
  slab.notes = base + layout.notes_offset();
  slab.header = reinterpret_cast<BatchHeader*>(base + layout.header_offset());
  return slab;
}

namespace {

enum class SlabState : unsigned char { free, filling, ready, copying };

const char* name_of(SlabState state) {
  switch (state) {
    case SlabState::free:
      return "free";
    case SlabState::filling:
      return "filling";
    case SlabState::ready:
      return "ready";
    case SlabState::copying:
      return "copying";
  }
  return "?";
}

Slab make_slab(std::shared_ptr<Memory> memory, size_t offset, const BatchLayout& layout) {
  Slab slab = slab_at(memory->data() + offset, layout);
  slab.memory = std::move(memory);
  new (slab.header) BatchHeader;
  return slab;
}

// Memory of slabs that were given away and came back, to be used again: which memory is held
// changes all the time, but its amount seldom does. Threads: any.
class Spares {
 public:
  // Reserves all room here, because keep() is called where nothing may throw.
  explicit Spares(size_t most) : most_(most) { kept_.reserve(most); }
  std::unique_ptr<Memory> take() {  // null: there is none
    MutexLock lock(mutex_);
    if (kept_.empty()) return nullptr;
    std::unique_ptr<Memory> memory = std::move(kept_.back());
    kept_.pop_back();
    return memory;
  }
  void keep(std::unique_ptr<Memory> memory) {
    MutexLock lock(mutex_);
    if (kept_.size() < most_) kept_.push_back(std::move(memory));
  }

 private:
  const size_t most_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Memory>> kept_ GUARDED_BY(mutex_);
};

// Returns memory whose last owner gives it back to `spares`, if that still exists.
std::shared_ptr<Memory> returning(std::unique_ptr<Memory> memory,
                                  const std::shared_ptr<Spares>& spares) {
  return {memory.release(), [home = std::weak_ptr(spares)](Memory* last) {
            std::unique_ptr<Memory> owned(last);
            if (const auto there = home.lock()) there->keep(std::move(owned));
          }};
}

struct SlabLife {
  SlabState state = SlabState::free;
  Step step = 0;  // the step that the slab serves; while free, the next one

  bool is(SlabState wanted, Step of) const { return step == of && state == wanted; }
};

}  // namespace

struct PinnedRing::Impl {
  Impl(Device& of, const BatchLayout& slab_layout, int capacity, Step first_step)
      : device(of),
        layout(slab_layout),
        spares(std::make_shared<Spares>(static_cast<size_t>(capacity))),
        slabs(static_cast<size_t>(capacity)),
        is_new(slabs.size()),
        lives(slabs.size()),
        next_take(first_step) {}

  std::shared_ptr<Memory> allocate_slab() {
    return returning(device.allocate(layout.slab_bytes(), MemoryKind::pinned), spares);
  }

  // Returns the memory of a slab that came back, or new memory with its pages.
  std::shared_ptr<Memory> other_slab() {
    if (std::unique_ptr<Memory> spare = spares->take()) return returning(std::move(spare), spares);
    std::shared_ptr<Memory> memory = allocate_slab();
    std::memset(memory->data(), 0, layout.slab_bytes());
    return memory;
  }

  size_t index_of(Step step) const { return static_cast<size_t>(step) % slabs.size(); }
  Slab& slab(Step step) { return slabs[index_of(step)]; }
  SlabLife& life(Step step) REQUIRES(mutex) { return lives[index_of(step)]; }

  // Aborts unless step's slab serves step and is in `state`.
  SlabLife& expect(const char* call, Step step, SlabState state) REQUIRES(mutex) {
    if (step < 0) broken(call, step, "steps count from 0");
    SlabLife& found = life(step);
    if (!found.is(state, step)) {
      broken(call, step,
             std::string("its slab is ") + name_of(found.state) + " for step " +
                 std::to_string(found.step) + ", expected " + name_of(state));
    }
    return found;
  }

  [[noreturn]] static void broken(const char* call, Step step, const std::string& why) {
    std::fprintf(stderr, "stoker: PinnedRing::%s(step %lld): broken life cycle: %s\n", call,
                 static_cast<long long>(step), why.c_str());
    std::abort();
  }

  void rethrow_error() const REQUIRES(mutex) {
    if (error != nullptr) std::rethrow_exception(error);
  }

  Device& device;
  const BatchLayout layout;
  const std::shared_ptr<Spares> spares;
  std::vector<Slab> slabs;   // each is synchronised by its SlabLife
  std::vector<char> is_new;  // for each, too: whether its pages come with its first step
  StageStats stats;

  mutable Mutex mutex;
  CondVar became_free;
  CondVar became_ready;
  std::vector<SlabLife> lives GUARDED_BY(mutex);  // one per slab
  Step next_take GUARDED_BY(mutex);
  int64_t ready GUARDED_BY(mutex) = 0;  // slabs in state ready
  bool stopped GUARDED_BY(mutex) = false;
  std::exception_ptr error GUARDED_BY(mutex);
};

PinnedRing::PinnedRing(Device& device, const BatchLayout& layout, int capacity, Step first_step) {
  if (capacity < 1 || first_step < 0) {
    throw std::invalid_argument("PinnedRing: capacity " + std::to_string(capacity) +
                                " must be at least 1 and first step " + std::to_string(first_step) +
                                " at least 0");
  }
  impl_ = std::make_unique<Impl>(device, layout, capacity, first_step);
  // Pinned memory is one allocation, because each call and each page costs time. On a host each
  // slab has its own, because it may be given away.
  std::shared_ptr<Memory> whole;
  const size_t slabs = impl_->slabs.size();
  if (!device.host_accessible()) {
    whole = device.allocate(slabs * layout.slab_bytes(), MemoryKind::pinned);
  }
  for (size_t i = 0; i < slabs; ++i) {
    const Step step = first_step + static_cast<Step>(i);
    impl_->slab(step) = whole ? make_slab(whole, i * layout.slab_bytes(), layout)
                              : make_slab(impl_->allocate_slab(), 0, layout);
    impl_->is_new[impl_->index_of(step)] = whole == nullptr;
    impl_->life(step).step = step;
  }
}

PinnedRing::~PinnedRing() {
  MutexLock lock(impl_->mutex);
  for (const SlabLife& life : impl_->lives) {
    if (life.state == SlabState::filling || life.state == SlabState::copying) {
      Impl::broken("~PinnedRing", life.step,
                   std::string("its slab is still ") + name_of(life.state));
    }
  }
}

bool PinnedRing::wait_free(Step step) {
  MutexLock lock(impl_->mutex);
  if (step < 0) Impl::broken("wait_free", step, "steps count from 0");
  const SlabLife& life = impl_->life(step);
  if (!impl_->stopped && !life.is(SlabState::free, step)) {
    int64_t start_ns = steady_now_ns();
    while (!impl_->stopped && !life.is(SlabState::free, step)) {
      if (life.step >= step) Impl::broken("wait_free", step, "the step has begun already");
      impl_->became_free.wait(lock);
    }
    impl_->stats.add_output_wait(steady_now_ns() - start_ns);
  }
  return !impl_->stopped;
}

Slab& PinnedRing::begin(Step step) {
  {
    MutexLock lock(impl_->mutex);
    impl_->expect("begin", step, SlabState::free).state = SlabState::filling;
  }
  // Until commit() only the caller uses the slab.
  Slab& slab = impl_->slab(step);
  if (std::exchange(impl_->is_new[impl_->index_of(step)], 0) != 0) {
    std::memset(slab.base, 0, impl_->layout.slab_bytes());
  }
  *slab.header = BatchHeader{};
  slab.header->step = step;
  return slab;
}

void PinnedRing::commit(Step step) {
  {
    MutexLock lock(impl_->mutex);
    SlabLife& life = impl_->expect("commit", step, SlabState::filling);
    impl_->slab(step).header->ready_ns = steady_now_ns();
    life.state = SlabState::ready;
    ++impl_->ready;
  }
  impl_->became_ready.notify_one();  // there is one taker
}

Slab* PinnedRing::take(Step step) {
  MutexLock lock(impl_->mutex);
  if (step != impl_->next_take) {
    Impl::broken("take", step,
                 "steps are taken in order, next is " + std::to_string(impl_->next_take));
  }
  SlabLife& life = impl_->life(step);
  int64_t ready_before = impl_->ready;
  if (!impl_->stopped && !life.is(SlabState::ready, step)) {
    int64_t start_ns = steady_now_ns();
    while (!impl_->stopped && !life.is(SlabState::ready, step)) impl_->became_ready.wait(lock);
    impl_->stats.add_input_wait(steady_now_ns() - start_ns);
  }
  if (impl_->stopped) {
    impl_->rethrow_error();
    return nullptr;
  }
  life.state = SlabState::copying;
  --impl_->ready;
  ++impl_->next_take;
  impl_->stats.add_item(ready_before);
  return &impl_->slab(step);
}

bool PinnedRing::wait_ready(Step step, int ms) {
  MutexLock lock(impl_->mutex);
  const SlabLife& life = impl_->life(step);
  if (impl_->stopped || life.is(SlabState::ready, step)) return true;
  const int64_t start_ns = steady_now_ns();
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
  while (!impl_->stopped && !life.is(SlabState::ready, step) &&
         impl_->became_ready.wait_until(lock, until)) {
  }
  impl_->stats.add_input_wait(steady_now_ns() - start_ns);
  return impl_->stopped || life.is(SlabState::ready, step);
}

void PinnedRing::release(Step step) {
  {
    MutexLock lock(impl_->mutex);
    SlabLife& life = impl_->expect("release", step, SlabState::copying);
    life.state = SlabState::free;
    life.step += static_cast<Step>(impl_->slabs.size());
  }
  impl_->became_free.notify_all();
}

std::shared_ptr<Memory> PinnedRing::give_away(Step step) {
  bool stopped = false;
  {
    MutexLock lock(impl_->mutex);
    impl_->expect("give_away", step, SlabState::copying);
    stopped = impl_->stopped;
  }
  // Until release() only the caller uses the slab, so the allocation needs no lock.
  Slab& slab = impl_->slab(step);
  Slab next;
  if (!stopped) next = make_slab(impl_->other_slab(), 0, impl_->layout);
  return std::exchange(slab, std::move(next)).memory;
}

void PinnedRing::stop(std::exception_ptr error) noexcept {
  {
    MutexLock lock(impl_->mutex);
    if (impl_->stopped) return;
    impl_->stopped = true;
    impl_->error = std::move(error);
  }
  impl_->became_free.notify_all();
  impl_->became_ready.notify_all();
}

bool PinnedRing::stopped() const {
  MutexLock lock(impl_->mutex);
  if (impl_->stopped) impl_->rethrow_error();
  return impl_->stopped;
}

const BatchLayout& PinnedRing::layout() const { return impl_->layout; }

int PinnedRing::capacity() const { return static_cast<int>(impl_->slabs.size()); }

StageStats& PinnedRing::stats() { return impl_->stats; }

}  // namespace stoker
