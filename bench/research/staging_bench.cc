// Measures what staging itself costs the host per batch: the ring, the stager with k slots, and the
// host device's streams and events. Batches are tiny, so that the overhead is measured and not the
// copy. "Time" is wall time, "CPU" is the time of all threads together.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <limits>
#include <thread>

#include "staging/stager.h"

namespace stoker {
namespace {

constexpr Step kNoEnd = std::numeric_limits<Step>::max();
constexpr int kCapacity = 4;

BatchLayout tiny_layout() { return BatchLayout({.rows = 1, .height = 4, .width = 4}); }

// Makes all calls of a slab's life on one thread; none of them blocks.
void ring_alone(benchmark::State& state) {
  auto device = make_host_device();
  PinnedRing ring(*device, tiny_layout(), kCapacity);
  Step step = 0;
  for (auto _ : state) {
    ring.wait_free(step);
    ring.begin(step);
    ring.commit(step);
    benchmark::DoNotOptimize(ring.take(step));
    ring.release(step);
    ++step;
  }
}
BENCHMARK(ring_alone);

// Queues copies, records and waits on one stream, whose worker keeps up or blocks the caller.
void stream_operations(benchmark::State& state) {
  auto device = make_host_device();
  auto stream = device->make_stream();
  auto event = device->make_event();
  int64_t source = 1;
  int64_t target = 0;
  for (auto _ : state) {
    stream->copy(&target, &source, sizeof(target), CopyKind::host_to_device);
    stream->record(*event);
  }
  stream->synchronize();
}
BENCHMARK(stream_operations)->MeasureProcessCPUTime()->UseRealTime();

// A round trip: queue, wake the worker, wake the caller.
void stream_round_trip(benchmark::State& state) {
  auto device = make_host_device();
  auto stream = device->make_stream();
  for (auto _ : state) {
    stream->call([] {});
    stream->synchronize();
  }
}
BENCHMARK(stream_round_trip)->MeasureProcessCPUTime()->UseRealTime();

// A whole feed: one filling thread, state.range(0) slots, a consumer that queues work on each batch
// and blocks on nothing but next().
void feed(benchmark::State& state) {
  auto device = make_host_device();
  auto compute = device->make_stream();
  PinnedRing ring(*device, tiny_layout(), kCapacity);
  std::thread filler([&ring] {
    for (Step step = 0; ring.wait_free(step); ++step) {
      ring.begin(step);
      ring.commit(step);
    }
  });
  {
    Stager stager(*device, ring, static_cast<int>(state.range(0)), 0, kNoEnd);
    int64_t sum = 0;
    for (auto _ : state) {
      DeviceBatch batch = stager.next(*compute);
      compute->call([&sum, labels = batch.labels()] { sum += *labels; });
    }
    compute->synchronize();
    benchmark::DoNotOptimize(sum);
  }
  filler.join();
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(feed)->DenseRange(0, Stager::kMaxSlots)->MeasureProcessCPUTime()->UseRealTime();

}  // namespace
}  // namespace stoker

BENCHMARK_MAIN();
