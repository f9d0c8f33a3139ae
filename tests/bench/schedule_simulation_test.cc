// The predictions against what can be calculated by hand.
#include "bench/suite/schedule_simulation.h"

#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>

namespace stoker {
namespace {

constexpr double kRelative = 1e-9;

// GPUs with a link of 1 GB/s each. The host's memory never limits.
LinkMachine machine(int gpus, PeerWay peers = PeerWay::tree) {
  LinkMachine machine;
  machine.name = "test";
  machine.peers = peers;
  machine.memory_per_second = 1e15;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    machine.links.push_back({"link" + std::to_string(gpu), 1e9, 1e9});
    machine.gpus.push_back({"gpu" + std::to_string(gpu), {gpu}, -1, 0});
  }
  return machine;
}

// A step of 100 ms with a batch of 20 MB, which takes 20 ms over such a link.
TrainingWork work(int64_t floats = 0) {
  TrainingWork work;
  work.rows = 100;
  work.row_bytes = 2e5;
  work.step_seconds = 0.1;
  work.parts = {{1, floats}};
  return work;
}

SchedulePrediction predict(const LinkMachine& machine, const TrainingWork& work,
                           ScheduleOptions options) {
  options.gpus = static_cast<int>(machine.gpus.size());
  return predict_schedule(machine, work, options);
}

const LinkLoad& load_schedule(const SchedulePrediction& prediction, const std::string& name) {
  for (const LinkLoad& load_schedule : prediction.links) {
    if (load_schedule.name == name) return load_schedule;
  }
  throw std::out_of_range(name);
}

TEST(Schedule, OneGpuThatComputesWaitsForNothing) {
  for (const int slots : {2, 3}) {
    const SchedulePrediction two = predict(machine(1), work(), {.slots = slots});
    EXPECT_NEAR(two.images_per_second, 1000, 1000 * kRelative);
    EXPECT_NEAR(two.gap_seconds, 0, 1e-12);
  }
}

// Without a second slot the copy cannot run while the step does.
TEST(Schedule, WithNoOrOneSlotTheCopyIsTheGap) {
  for (const int slots : {0, 1}) {
    const SchedulePrediction prediction = predict(machine(1), work(), {.slots = slots});
    EXPECT_NEAR(prediction.gap_seconds, 0.02, 0.02 * kRelative) << slots;
    EXPECT_NEAR(prediction.step_seconds, 0.12, 0.12 * kRelative) << slots;
  }
}

TEST(Schedule, ResidentBatchesCostNothing) {
  ScheduleOptions options;
  options.resident = true;
  options.slots = 0;
  options.cores = 1;
  options.core_seconds_per_row = 1;
  options.reduce = ReduceKind::none;
  const SchedulePrediction prediction = predict(machine(2), work(), options);
  EXPECT_NEAR(prediction.images_per_second, 2000, 2000 * kRelative);
  EXPECT_EQ(load_schedule(prediction, "link0").down_bytes, 0);
  EXPECT_EQ(load_schedule(prediction, "host memory").down_bytes, 0);
}

TEST(Schedule, CopyBoundStepsTakeTheCopysTime) {
  TrainingWork fast = work();
  fast.step_seconds = 0.005;
  const SchedulePrediction prediction = predict(machine(1), fast, {.slots = 2});
  EXPECT_NEAR(prediction.step_seconds, 0.02, 0.02 * kRelative);
  EXPECT_NEAR(prediction.gap_seconds, 0.015, 0.015 * kRelative);
  EXPECT_NEAR(load_schedule(prediction, "link0").busy, 1, 1e-9);
}

TEST(Schedule, ASharedSwitchHalvesTheBandwidth) {
  TrainingWork fast = work();
  fast.step_seconds = 0.005;
  LinkMachine shared = machine(2);
  EXPECT_NEAR(predict(shared, fast, {.reduce = ReduceKind::none}).step_seconds, 0.02, 1e-11);
  shared.links.push_back({"switch", 1e9, 1e9});
  for (MachineGpu& gpu : shared.gpus) gpu.path.push_back(2);
  const SchedulePrediction prediction = predict(shared, fast, {.reduce = ReduceKind::none});
  EXPECT_NEAR(prediction.step_seconds, 0.04, 0.04 * kRelative);
  EXPECT_DOUBLE_EQ(load_schedule(prediction, "switch").down_bytes, 4e7);
  EXPECT_DOUBLE_EQ(load_schedule(prediction, "link1").down_bytes, 2e7);
}

TEST(Schedule, TheSlowestDecoderLimits) {
  ScheduleOptions options;
  options.cores = 2;
  options.core_seconds_per_row = 0.004;  // 500 rows/s
  options.reduce = ReduceKind::none;
  EXPECT_NEAR(predict(machine(1), work(), options).images_per_second, 500, 500 * kRelative);
  EXPECT_NEAR(predict(machine(2), work(), options).images_per_second, 500, 500 * kRelative);
  options.core_seconds_per_row = 0.001;  // 2000 rows/s are enough for one
  EXPECT_NEAR(predict(machine(1), work(), options).images_per_second, 1000, 1000 * kRelative);
}

TEST(Schedule, TheHostsMemoryLimitsAllGpusTogether) {
  LinkMachine slow = machine(2);
  slow.memory_per_second = 1e9;
  ScheduleOptions options;
  options.reduce = ReduceKind::none;
  options.file_bytes_per_row = 1e5;
  // Two batches of 100 rows: files twice 1e5, pixels 2e5 written and read.
  const SchedulePrediction prediction = predict(slow, work(), options);
  EXPECT_NEAR(prediction.step_seconds, 2 * 100 * 6e5 / 1e9, 1e-9);
  EXPECT_NEAR(load_schedule(prediction, "host memory").down_bytes, 2 * 100 * 6e5, 1e-3);
}

// 2 (n - 1) / n of the gradients cross every link in each direction.
TEST(Schedule, ARingMovesItsShareOverEveryLink) {
  constexpr int64_t kFloats = 25'000'000;  // 100 MB
  for (const int gpus : {2, 3, 8}) {
    TrainingWork late = work(kFloats);
    const SchedulePrediction prediction =
        predict(machine(gpus), late, {.reduce = ReduceKind::nccl});
    const double bytes = 2.0 * (gpus - 1) / gpus * 4 * kFloats;
    EXPECT_NEAR(load_schedule(prediction, "link1").up_bytes, bytes, 1) << gpus;
    EXPECT_NEAR(load_schedule(prediction, "link1").down_bytes, bytes + 2e7, 1) << gpus;
    // In one bucket the sum begins when the backward pass ends. The next copy shares the link, so
    // it may take that much longer.
    EXPECT_GE(prediction.exchange_seconds, bytes / 1e9 * (1 - kRelative)) << gpus;
    EXPECT_LE(prediction.exchange_seconds, bytes / 1e9 + 0.02 + 1e-9) << gpus;
    const SchedulePrediction half =
        predict(machine(gpus), late, {.reduce = ReduceKind::nccl, .wire = GradWire::bf16});
    EXPECT_NEAR(load_schedule(half, "link1").up_bytes, bytes / 2, 1) << gpus;
  }
}

// Buckets but for the last are summed while the backward pass runs.
TEST(Schedule, BucketsHideTheSum) {
  TrainingWork buckets = work();
  buckets.forward_share = 0;
  buckets.parts = {{0.25, 1'000'000}, {0.25, 1'000'000}, {0.25, 1'000'000}, {0.25, 1'000'000}};
  // Each takes 2 (2 - 1) / 2 * 4 MB / 1 GB/s = 4 ms, and a quarter of the pass 25 ms. Slot 0 keeps
  // copies out of the way of sums.
  const SchedulePrediction prediction =
      predict(machine(2), buckets, {.slots = 0, .reduce = ReduceKind::nccl});
  EXPECT_NEAR(prediction.exchange_seconds, 0.004, 1e-9);
  EXPECT_NEAR(prediction.step_seconds, 0.1 + 0.004 + 0.02, 1e-9);
  // A sum that takes longer than the pass queues: 25 ms pass, then all four.
  for (BackwardPart& part : buckets.parts) part.floats = 25'000'000;  // 100 ms each
  const SchedulePrediction queued =
      predict(machine(2), buckets, {.slots = 0, .reduce = ReduceKind::nccl});
  EXPECT_NEAR(queued.exchange_seconds, 0.025 + 0.4 - 0.1, 1e-9);
}

TEST(Schedule, LatencyCountsForEveryMessage) {
  LinkMachine late = machine(4);
  late.latency_seconds = 1e-3;
  TrainingWork tiny = work(1);
  tiny.row_bytes = 1e-3;
  const SchedulePrediction prediction =
      predict(late, tiny, {.slots = 2, .reduce = ReduceKind::nccl});
  EXPECT_NEAR(prediction.exchange_seconds, 2 * 3 * 1e-3, 1e-7);
  // Buckets are summed one after the other, even if both are there.
  tiny.parts = {{1, 1}, {0, 1}};
  const SchedulePrediction two = predict(late, tiny, {.slots = 2, .reduce = ReduceKind::nccl});
  EXPECT_NEAR(two.exchange_seconds, 2 * 2 * 3 * 1e-3, 1e-7);
}

// Gradients of 4 MB come to the host, are summed, and go back: twice 4 ms and the sum, which reads
// and writes two buffers.
TEST(Schedule, ThroughTheHostGradientsGoThereAndBack) {
  LinkMachine two = machine(2);
  two.memory_per_second = 100e9;
  const SchedulePrediction prediction =
      predict(two, work(1'000'000), {.slots = 0, .reduce = ReduceKind::host});
  EXPECT_NEAR(prediction.exchange_seconds, 0.004 + 16e6 / 100e9 + 0.004, 1e-9);
  EXPECT_NEAR(load_schedule(prediction, "link0").up_bytes, 4e6, 1e-3);
  EXPECT_NEAR(load_schedule(prediction, "link0").down_bytes, 4e6 + 2e7, 1e-3);
  // Copies between GPU and host are in fp32 on any wire.
  const SchedulePrediction one_bit = predict(
      two, work(1'000'000), {.slots = 0, .reduce = ReduceKind::host, .wire = GradWire::one_bit});
  EXPECT_NEAR(load_schedule(one_bit, "link0").up_bytes, 4e6, 1e-3);
}

// In pieces of 8 MiB, the sum of one runs while the next is copied. With encoded gradients all come
// first.
TEST(Schedule, PiecesAreSummedWhileOthersAreCopied) {
  LinkMachine two = machine(2);
  two.memory_per_second = 8e9;
  const int64_t floats = 4 * (int64_t{8} << 20) / 4;  // four pieces
  const double piece = static_cast<double>(int64_t{8} << 20);
  const SchedulePrediction pieces =
      predict(two, work(floats), {.slots = 0, .reduce = ReduceKind::host});
  const SchedulePrediction whole =
      predict(two, work(floats), {.slots = 0, .reduce = ReduceKind::host, .wire = GradWire::bf16});
  const double copies = 2 * 4 * piece / 1e9, sums = 4 * 4 * piece / 8e9;
  EXPECT_NEAR(whole.exchange_seconds, copies + sums, 1e-6);
  // The last piece is summed while the first three go back.
  EXPECT_NEAR(pieces.exchange_seconds, copies, 1e-6);
}

// So the first piece goes back while the second is summed.
TEST(Schedule, PiecesAreSummedInTheirOrder) {
  LinkMachine two = machine(2);
  two.memory_per_second = 16e9;
  for (MachineLink& link : two.links) link.up = 1e12;
  const double piece = static_cast<double>(int64_t{8} << 20);
  const SchedulePrediction prediction =
      predict(two, work(2 * (int64_t{8} << 20) / 4), {.slots = 0, .reduce = ReduceKind::host});
  // Both pieces are copied to the host at the memory's rate; the first sum; both go back.
  const double expected = 2 * 2 * piece / 16e9 + 4 * piece / 16e9 + 2 * piece / 1e9;
  EXPECT_NEAR(prediction.exchange_seconds, expected, 0.05 * expected);
}

TEST(Schedule, AServerReadsAndWritesTheHostsMemory) {
  LinkMachine slow = machine(2);
  slow.memory_per_second = 4e9;
  constexpr int64_t kFloats = 1'000'000;
  const SchedulePrediction prediction =
      predict(slow, work(kFloats), {.slots = 0, .reduce = ReduceKind::server});
  // Two buffers are read and their sum written and read; weights and momenta are read and written.
  const double update = (2 + 1 + 1 + 4) * 4.0 * kFloats / 4e9;
  EXPECT_NEAR(prediction.exchange_seconds, 4.0 * kFloats / 1e9 * 2 + update, 1e-9);
}

TEST(Schedule, AServerGetsTheWiresBytesAndGivesWeightsBack) {
  const SchedulePrediction prediction =
      predict(machine(2), work(1 << 20),
              {.slots = 0, .reduce = ReduceKind::server, .wire = GradWire::int8});
  const double pushed = (1 << 20) + 4.0 * ((1 << 20) / 1024);  // a scale per 1024 values
  EXPECT_NEAR(load_schedule(prediction, "link0").up_bytes, pushed, 1e-3);
  EXPECT_NEAR(load_schedule(prediction, "link0").down_bytes, 4.0 * (1 << 20) + 2e7, 1e-3);
  EXPECT_NEAR(prediction.exchange_seconds, (pushed + 4.0 * (1 << 20)) / 1e9, 1e-6);
}

// The last bucket is pushed after the pass, over the one link of the first GPU; weights come back.
TEST(Schedule, AServerOnTheFirstGpuSharesItsLink) {
  TrainingWork buckets = work();
  buckets.parts.assign(4, {0.25, 1'000'000});
  const SchedulePrediction prediction =
      predict(machine(3), buckets, {.slots = 0, .reduce = ReduceKind::server_device});
  EXPECT_NEAR(load_schedule(prediction, "link0").up_bytes, 2 * 16e6, 1e-3);
  EXPECT_NEAR(load_schedule(prediction, "link0").down_bytes, 2 * 16e6 + 2e7, 1e-3);
  EXPECT_NEAR(load_schedule(prediction, "link1").up_bytes, 16e6, 1e-3);
  // 8 ms for the last bucket's two pushes, 32 ms for the two pulls. The first GPU pulls nothing and
  // is ahead by that time, but waits for the others' next gradients.
  EXPECT_NEAR(prediction.exchange_seconds, 0.008 + 0.032, 1e-9);
  const SchedulePrediction alone =
      predict(machine(1), buckets, {.slots = 0, .reduce = ReduceKind::server_device});
  EXPECT_EQ(alone.exchange_seconds, 0);
}

TEST(Schedule, WhereABatchIsCutDecidesTheBytes) {
  const LinkMachine four = machine(4);
  ScheduleOptions options;
  options.reduce = ReduceKind::none;
  const SchedulePrediction host = predict(four, work(), options);
  options.slice = CutOn::each_device;
  const SchedulePrediction each = predict(four, work(), options);
  options.slice = CutOn::first_device;
  const SchedulePrediction first = predict(four, work(), options);
  for (const char* link : {"link0", "link3"}) {
    EXPECT_DOUBLE_EQ(load_schedule(host, link).down_bytes, 2e7) << link;
    EXPECT_DOUBLE_EQ(load_schedule(each, link).down_bytes, 8e7) << link;
  }
  EXPECT_DOUBLE_EQ(load_schedule(first, "link0").down_bytes, 8e7);
  EXPECT_DOUBLE_EQ(load_schedule(first, "link0").up_bytes, 6e7);  // the parts of the other three
  EXPECT_DOUBLE_EQ(load_schedule(first, "link3").down_bytes, 2e7);
  // 80 ms of copies hide behind steps of 100 ms.
  EXPECT_NEAR(each.images_per_second, 4000, 4000 * kRelative);
  // Decoding and the host's memory serve one batch, whoever cuts it.
  EXPECT_DOUBLE_EQ(load_schedule(host, "host memory").down_bytes, 4 * 4e7);
  EXPECT_DOUBLE_EQ(load_schedule(each, "host memory").down_bytes, 8e7 + 4 * 8e7);
}

// The first GPU's only slot is free when the others have their parts.
TEST(Schedule, CopiesFromTheFirstGpuHoldItsSlot) {
  TrainingWork fast = work();
  fast.step_seconds = 0.01;
  ScheduleOptions options;
  options.reduce = ReduceKind::none;
  options.slots = 1;
  options.slice = CutOn::first_device;
  // 80 ms for the whole batch, then 60 ms for three parts.
  EXPECT_NEAR(predict(machine(4), fast, options).step_seconds, 0.08 + 0.06, 1e-9);
}

TEST(Schedule, OneBatchTakesTheTimeOfItsCopies) {
  const LinkMachine four = machine(4);
  EXPECT_NEAR(predict_slice(four, 4e6, CutOn::host), 1e-3, 1e-12);
  EXPECT_NEAR(predict_slice(four, 4e6, CutOn::each_device), 4e-3, 1e-12);
  // The whole batch, then three parts over the first GPU's link.
  EXPECT_NEAR(predict_slice(four, 4e6, CutOn::first_device), 4e-3 + 3e-3, 1e-12);
}

TEST(Schedule, EvenPartsHaveTheSizesOfTheTrainersBuckets) {
  constexpr int64_t kMiB = 1 << 20;
  const auto parts = even_parts(60 * kMiB / 4, 25 * kMiB);
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_EQ(parts[0].floats, kMiB / 4);
  EXPECT_EQ(parts[1].floats, 25 * kMiB / 4);
  EXPECT_EQ(parts[3].floats, 9 * kMiB / 4);
  EXPECT_NEAR(
      std::accumulate(parts.begin(), parts.end(), 0.0,
                      [](double sum, const BackwardPart& part) { return sum + part.share; }),
      1, 1e-12);
  EXPECT_EQ(even_parts(kMiB, 0).size(), 1u);
  EXPECT_EQ(even_parts(0, kMiB).size(), 1u);
}

TEST(Schedule, RefusesWhatMakesNoSense) {
  EXPECT_THROW(predict_schedule(machine(1), work(), {.gpus = 2}), std::invalid_argument);
  EXPECT_THROW(predict(machine(1), work(), {.slots = 4}), std::invalid_argument);
  EXPECT_THROW(predict(machine(1), {}, {}), std::invalid_argument);
  EXPECT_THROW(predict(machine(2), work(1), {.wire = GradWire::int8}), std::invalid_argument);
  EXPECT_THROW(predict(machine(2), work(1), {.reduce = ReduceKind::device}), std::invalid_argument);
  EXPECT_THROW(
      predict(machine(2), work(1), {.reduce = ReduceKind::server_device, .wire = GradWire::bf16}),
      std::invalid_argument);
  TrainingWork half = work();
  half.parts = {{0.5, 1}};
  EXPECT_THROW(predict(machine(1), half, {}), std::invalid_argument);
  EXPECT_THROW(even_parts(-1, 0), std::invalid_argument);
  EXPECT_THROW(even_parts(1, 3), std::invalid_argument);
  EXPECT_THROW(even_parts(1 << 30, 4), std::invalid_argument);
}

}  // namespace
}  // namespace stoker
