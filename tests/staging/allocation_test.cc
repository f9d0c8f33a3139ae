// In the steady state nothing is allocated per batch: not by the ring, the stager or the host
// device.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

#include "staging/stager.h"
#include "tests/staging/feed.h"

namespace {
std::atomic<int64_t> counted_allocations{0};

void* counted(size_t bytes, size_t alignment) {
  counted_allocations.fetch_add(1, std::memory_order_relaxed);
  size_t rounded = (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
}  // namespace

void* operator new(size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void* operator new[](size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<size_t>(alignment));
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

namespace stoker::testing {
namespace {

TEST(Allocations, AreCounted) {
  int64_t before = counted_allocations.load();
  auto number = std::make_unique<int>(1);
  auto device = make_host_device();
  device->allocate(100, MemoryKind::pinned);
  EXPECT_GE(counted_allocations.load() - before, 4);
}

TEST(Allocations, NonePerBatchInTheSteadyState) {
  constexpr Step kWarmUp = 8;
  constexpr Step kSteps = 3000;  // the streams' queues wrap around
  for (int slots = 0; slots <= Stager::kMaxSlots; ++slots) {
    auto device = make_host_device();
    auto compute = device->make_stream();
    auto timer = device->make_event(true);
    BatchLayout layout(small_shape());
    PinnedRing ring(*device, layout, 3);
    Producer producer(ring, 0, kSteps);
    Stager stager(*device, ring, slots, 0, kSteps);
    int64_t before = 0;
    std::atomic<int64_t> sum{0};
    for (Step step = 0; step < kSteps; ++step) {
      if (step == kWarmUp) before = counted_allocations.load();
      DeviceBatch batch = stager.next(*compute);
      compute->call([&sum, labels = batch.labels()] { sum += labels[0]; });
      compute->record(*timer);
      batch.synchronize();
    }
    compute->synchronize();
    EXPECT_EQ(counted_allocations.load() - before, 0) << slots << " slots";
    EXPECT_EQ(sum, kSteps * (kSteps - 1) / 2 * 100);
  }
}

}  // namespace
}  // namespace stoker::testing
