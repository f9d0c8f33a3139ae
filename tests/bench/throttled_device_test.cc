// Throttled devices with a clock of their own: what copies cost and move, without measuring time.
#include "bench/suite/throttled_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include "bench/suite/throttled_run.h"

namespace stoker {
namespace {

class FakeClock final : public Clock {
 public:
  double seconds() override { return now_; }
  void sleep(double seconds) override { now_ += seconds; }

 private:
  double now_ = 0;
};

// Two GPUs with links of 1 GB/s behind a switch of 1 GB/s.
LinkMachine behind_a_switch() {
  LinkMachine machine;
  machine.name = "test";
  machine.memory_per_second = 1e18;
  machine.links = {{"a", 1e9, 1e9}, {"b", 1e9, 1e9}, {"switch", 1e9, 1e9}};
  machine.gpus = {{"a", {0, 2}, -1, 0}, {"b", {1, 2}, -1, 0}};
  return machine;
}

TEST(ThrottledLinks, APieceWaitsForThoseBeforeItOnItsLinks) {
  const LinkMachine machine = behind_a_switch();
  FakeClock clock;
  ThrottledLinks links(machine, clock);
  const Route a = route_to_gpu(machine, 0), b = route_to_gpu(machine, 1);
  EXPECT_DOUBLE_EQ(links.send(a, 1e6, 0), 1e-3);
  EXPECT_DOUBLE_EQ(links.send(b, 1e6, 0), 2e-3);  // behind a's on the switch
  EXPECT_DOUBLE_EQ(links.send(a, 1e6, 1e-3), 3e-3);
  // The other direction is free, and so is the switch for bytes that turn below it.
  EXPECT_NEAR(links.send(route_to_host(machine, 0), 1e6, 0), 1e-3, 1e-9);
  EXPECT_DOUBLE_EQ(links.send(route_between(machine, 1, 0), 1e6, 10), 10.001);
  EXPECT_DOUBLE_EQ(links.sent({2, true}), 3e6);
  EXPECT_DOUBLE_EQ(links.sent({2, false}), 1e6);
  EXPECT_DOUBLE_EQ(links.sent({1, false}), 1e6);
}

TEST(ThrottledLinks, TheHostsMemoryIsSharedByAllCopies) {
  LinkMachine machine = behind_a_switch();
  machine.memory_per_second = 1e8;
  FakeClock clock;
  ThrottledLinks links(machine, clock);
  EXPECT_DOUBLE_EQ(links.send(route_to_gpu(machine, 0), 1e6, 0), 1e-2);
  EXPECT_DOUBLE_EQ(links.send(route_to_host(machine, 1), 1e6, 0), 2e-2);
}

TEST(ThrottledLinks, ACopyMovesItsBytesAndTakesItsTime) {
  LinkMachine machine = behind_a_switch();
  machine.latency_seconds = 0.5;
  FakeClock clock;
  ThrottledLinks links(machine, clock);
  std::vector<unsigned char> source(1'000'001), target(source.size());
  std::iota(source.begin(), source.end(), 0);
  links.copy(target.data(), source.data(), source.size(), route_to_gpu(machine, 0));
  EXPECT_EQ(target, source);
  EXPECT_NEAR(clock.seconds(), 0.5 + 1'000'001e-9, 1e-9);
}

TEST(ThrottledDevice, CopiesCrossTheLinksOfTheirKind) {
  const LinkMachine machine = behind_a_switch();
  FakeClock clock;
  ThrottledLinks links(machine, clock);
  const auto a = make_throttled_device(links, 0), b = make_throttled_device(links, 1);
  EXPECT_FALSE(a->host_accessible());
  EXPECT_EQ(b->name(), "cpu:1");
  constexpr size_t kBytes = 1000;
  const auto on_a = a->allocate(kBytes, MemoryKind::device);
  const auto also_on_a = a->allocate(kBytes, MemoryKind::device);
  const auto on_b = b->allocate(kBytes, MemoryKind::device);
  const auto pinned = a->allocate(kBytes, MemoryKind::pinned);
  std::memset(pinned->data(), 7, kBytes);
  EXPECT_EQ(links.gpu_of(on_a->data() + kBytes - 1), 0);
  EXPECT_EQ(links.gpu_of(on_b->data()), 1);
  EXPECT_EQ(links.gpu_of(pinned->data()), -1);
  const auto stream = a->make_stream();
  stream->copy(on_a->data(), pinned->data(), kBytes, CopyKind::host_to_device);
  stream->copy(also_on_a->data(), on_a->data(), kBytes, CopyKind::device_to_device);
  stream->copy(on_b->data(), also_on_a->data(), kBytes, CopyKind::device_to_device);
  stream->synchronize();
  EXPECT_EQ(on_b->data()[kBytes - 1], std::byte{7});
  EXPECT_DOUBLE_EQ(links.sent({0, true}), kBytes);
  EXPECT_DOUBLE_EQ(links.sent({2, true}), kBytes);
  EXPECT_DOUBLE_EQ(links.sent({0, false}), kBytes);  // to b, below the switch
  EXPECT_DOUBLE_EQ(links.sent({1, true}), kBytes);
  EXPECT_DOUBLE_EQ(links.sent({2, false}), 0);
  EXPECT_THROW(make_throttled_device(links, 2), std::invalid_argument);
}

// Real rings, stagers and the real collective move what the simulation says that they move.
TEST(ThrottledRun, MovesTheBytesThatAreSimulated) {
  LinkMachine machine = behind_a_switch();
  for (MachineLink& link : machine.links) link.down = link.up = 1e11;
  const BatchShape shape{.rows = 64, .height = 8, .width = 8};
  TrainingWork work;
  work.rows = shape.rows;
  work.row_bytes = static_cast<double>(BatchLayout(shape).device_bytes()) / shape.rows;
  work.step_seconds = 1e-4;
  work.parts = {{0.5, 3000}, {0.5, 5000}};
  for (const CutOn slice : {CutOn::host, CutOn::each_device}) {
    for (const ReduceKind reduce : {ReduceKind::none, ReduceKind::nccl, ReduceKind::host}) {
      for (const int slots : {0, 1, 2, 3}) {
        ScheduleOptions options;
        options.gpus = 2;
        options.slots = slots;
        options.reduce = reduce;
        options.slice = slice;
        options.steps = options.warmup = 3;
        const SchedulePrediction predicted = predict_schedule(machine, work, options);
        const ThrottledResult run = run_throttled(machine, work, shape, options);
        for (size_t link = 0; link < machine.links.size(); ++link) {
          EXPECT_NEAR(run.links[link].down_bytes, predicted.links[link].down_bytes, 1e-3)
              << to_string(slice) << ", " << to_string(reduce) << ", " << slots << " slots";
          EXPECT_NEAR(run.links[link].up_bytes, predicted.links[link].up_bytes, 1e-3);
        }
        EXPECT_GT(run.images_per_second, 0);
      }
    }
  }
}

}  // namespace
}  // namespace stoker
