// Measures what a sample of CIFAR's binary files costs without the feeder: copying its bytes,
// plainly and while the next sample is prefetched; and shifting, mirroring and interleaving them
// while the next sample is prefetched. Samples go from memory to a ring of slabs, as in training,
// or stay in the cache. The memory is the host device's, in huge pages if the kernel provides them,
// as the feeder's is. Items are samples.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>

#include "decode/pixel_ops.h"
#include "staging/device.h"

namespace stoker {
namespace {

constexpr int kSide = 32;
constexpr size_t kRowBytes = size_t{3} * kSide * kSide;
// CIFAR-10's training images, which no cache holds.
constexpr size_t kDataRows = 50'000;
// Four batches.
constexpr size_t kRingRows = 4 * 512;
// The next sample of a shuffled epoch is this many samples away.
constexpr size_t kFar = 7919;

enum Where : int64_t { shuffled, in_order, in_cache };
constexpr const char* kWhere[] = {"from memory, shuffled, to the ring",
                                  "from memory, in order, to the ring", "in the cache"};

template <typename Row>
void run(benchmark::State& state, const Row& row) {
  const Where where = static_cast<Where>(state.range(0));
  const size_t data_rows = where == in_cache ? 1 : kDataRows;
  const size_t ring_rows = where == in_cache ? 1 : kRingRows;
  const size_t stride = where == shuffled ? kFar : 1;
  const auto device = make_host_device();
  const auto data_memory = device->allocate(data_rows * kRowBytes, MemoryKind::device);
  const auto ring_memory = device->allocate(ring_rows * kRowBytes, MemoryKind::pinned);
  const auto* data = reinterpret_cast<const uint8_t*>(data_memory->data());
  auto* ring = reinterpret_cast<uint8_t*>(ring_memory->data());
  size_t i = 0;
  for (auto _ : state) {
    row(data + i * stride % data_rows * kRowBytes, data + (i + 1) * stride % data_rows * kRowBytes,
        ring + i % ring_rows * kRowBytes, i);
    benchmark::ClobberMemory();
    ++i;
  }
  state.SetItemsProcessed(state.iterations());
  state.SetLabel(kWhere[where]);
}

void copy(benchmark::State& state) {
  run(state, [](const uint8_t* from, const uint8_t*, uint8_t* to, size_t) {
    std::memcpy(to, from, kRowBytes);
  });
}

void prefetching_copy(benchmark::State& state) {
  run(state, [](const uint8_t* from, const uint8_t* next, uint8_t* to, size_t) {
    for (size_t line = 0; line < kRowBytes; line += 64) {
      __builtin_prefetch(next + line);
      std::memcpy(to + line, from + line, 64);
    }
  });
}

void shift_and_flip(benchmark::State& state) {
  run(state, [](const uint8_t* from, const uint8_t* next, uint8_t* to, size_t i) {
    const int x = static_cast<int>(i % 9) - 4, y = static_cast<int>(i / 9 % 9) - 4;
    shift_flip_planar(from, {kSide, kSide}, x, y, i % 2 == 0, PadMode::zero,
                      {to, kSide, kSide, 3 * kSide}, next);
  });
}

BENCHMARK(copy)->DenseRange(shuffled, in_cache);
BENCHMARK(prefetching_copy)->DenseRange(shuffled, in_cache);
BENCHMARK(shift_and_flip)->DenseRange(shuffled, in_cache);

}  // namespace
}  // namespace stoker

BENCHMARK_MAIN();
