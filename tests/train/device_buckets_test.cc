// Tests of gradients in buckets: where the gradient buffer is divided, that the sums have the same
// bits, and that a bucket is summed before the rest of the backward pass has run.
#include <gtest/gtest.h>

#include <atomic>
#include <semaphore>
#include <thread>
#include <utility>

#include "tests/support/fake_device.h"
#include "tests/support/wait_until.h"
#include "tests/train/device_fixture.h"
#include "train/collective/device.h"
#include "train/device/buckets.h"
#include "train/device/program.h"
#include "train/model/models.h"

namespace stoker {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int kReplicas = 2;
constexpr int kBucketSteps = 3;

ExecutionPlan training_plan(const NetSpec& net, const GradientLayout& layout) {
  const PlanOptions options =
      plan_options(engine_options(4, 4, 1, Precision::bf16), device_fusion({}), true);
  return build_device_program(net, options, DeviceTuning{}, layout, nullptr).plan;
}

// In a residual net the order of some gradients differs from the order of the buffer.
TEST(DeviceBuckets, CoverTheBufferAndThePlanAndWaitForTheirTensors) {
  for (const char* model : {"airnet", "resnet20", "resnet50"}) {
    const NetSpec net = make_net(model, {32, 32}, 100);
    const GradientLayout layout(net, device_fusion({}));
    const ExecutionPlan plan = training_plan(net, layout);
    for (const int64_t bytes : {int64_t{0}, int64_t{1}, kMiB / 16, kMiB, 25 * kMiB}) {
      const std::vector<DeviceBucket> buckets = plan_buckets(plan, layout, bytes);
      int64_t end = layout.numbers();
      size_t step = 0;
      int chunks = 0;
      for (const DeviceBucket& bucket : buckets) {
        EXPECT_EQ(bucket.range.end, end);
        EXPECT_EQ(bucket.begin_step, step);
        EXPECT_LT(bucket.begin_step, bucket.end_step);
        end = bucket.range.begin;
        step = bucket.end_step;
        chunks += bucket.chunks;
        for (size_t s = step; s < plan.steps.size(); ++s) {  // no later step writes into it
          if (plan.steps[s].use == StepUse::inputs) continue;
          for (const LayoutTensor& tensor : layout.tensors()) {
            if (tensor.node == plan.nodes[plan.steps[s].node].node &&
                tensor.offset >= bucket.range.begin) {
              const int writes = plan.steps[s].tensor;
              const bool other = writes >= 0 && &layout.tensors()[writes] != &tensor;
              EXPECT_TRUE(other) << model << " step " << plan.steps[s].name;
            }
          }
        }
      }
      EXPECT_EQ(end, 0);
      EXPECT_EQ(step, plan.steps.size());
      EXPECT_EQ(chunks, static_cast<int>(layout.chunks(kChunkNumbers, true).size()));
      EXPECT_TRUE(bytes != 0 || buckets.size() == 1);
      EXPECT_TRUE(bytes != 1 || buckets.size() > 10);
    }
  }
}

// The sizes of PyTorch's DistributedDataParallel: a first bucket of 1 MiB, then 25 MiB.
TEST(DeviceBuckets, OfResNet50) {
  const NetSpec net = make_net("resnet50", {224, 224}, 1000);
  const GradientLayout layout(net, device_fusion({}));
  const auto buckets = plan_buckets(training_plan(net, layout), layout, 25 * kMiB);
  ASSERT_EQ(buckets.size(), 5u);
  const auto mebibytes = [](const DeviceBucket& bucket) {
    return static_cast<double>(bucket.range.end - bucket.range.begin) * 4 / kMiB;
  };
  EXPECT_NEAR(mebibytes(buckets[0]), 8.0, 0.5);  // only the linear layer: a tensor is never split
  for (size_t b = 1; b < 4; ++b) {
    EXPECT_GE(mebibytes(buckets[b]), 25);
    EXPECT_LT(mebibytes(buckets[b]), 35);
  }
}

struct Replicas {
  Replicas(Device& on, int micro_batch_size, Precision precision, HostOpsState* states = nullptr)
      : net(small_airnet()) {
    EngineOptions options = engine_options(4, micro_batch_size, 1, precision);
    options.nominal_rows = 4 * kReplicas;
    for (int rank = 0; rank < kReplicas; ++rank) {
      engines.push_back(std::make_unique<DeviceEngine>(
          net, options, DeviceTuning{}, on, host_ops_factory(states ? states + rank : nullptr)));
      engines.back()->write(StateKind::parameters, initial_parameters(net, {1}));
      replicas.push_back({&on, engines.back()->stream()});
      for (int step = 0; step < kBucketSteps; ++step) {
        batches.push_back(make_batch(net, 4, static_cast<uint32_t>(10 * step + rank)));
      }
    }
  }

  // Returns every rank's weights after kSteps. The ranks' backward passes are late in turn.
  std::vector<Trained> train(Collective& collective, int64_t bucket_bytes) {
    std::vector<Trained> trained(kReplicas);
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < kReplicas; ++rank) {
      threads.emplace_back([&, rank] { run(collective, bucket_bytes, rank, trained[rank]); });
    }
    threads.clear();
    return trained;
  }

  const NetSpec net;
  std::vector<std::unique_ptr<Engine>> engines;
  std::vector<DeviceReplica> replicas;
  std::vector<TestBatch> batches;

 private:
  void run(Collective& collective, int64_t bucket_bytes, int rank, Trained& trained) {
    Engine& engine = *engines[rank];
    if (bucket_bytes > 0) {
      EXPECT_TRUE(engine.reduce_in_buckets(bucket_bytes, [&, rank](BufferRange range) {
        collective.ranges()->start(rank, engine.gradient_buffers(), engine.reduced_gradients(),
                                   range);
        engine.stream()->call([range, rank] {  // delays the next bucket differently per rank
          be_late(std::chrono::microseconds((range.begin / 128 + rank) % 3 * 300));
        });
      }));
    }
    for (int step = 0; step < kBucketSteps; ++step) {
      engine.stream()->call(
          [step, rank] { be_late(std::chrono::microseconds(step % 2 == rank ? 1000 : 0)); });
      engine.forward_backward(batches[static_cast<size_t>(rank * kBucketSteps + step)].rows());
      if (bucket_bytes > 0) {
        collective.ranges()->finish(rank);
      } else {
        collective.all_reduce(rank, engine.gradient_buffers(), engine.reduced_gradients());
      }
      apply(engine, {});
    }
    trained = state_of(engine);
  }
};

using MakeCollective = std::unique_ptr<Collective> (*)(std::span<const DeviceReplica>);

std::unique_ptr<Collective> on_device(std::span<const DeviceReplica> replicas) {
  return make_device_collective(replicas, sum_buffers_on_host);
}
std::unique_ptr<Collective> on_host(std::span<const DeviceReplica> replicas) {
  return make_staged_collective(replicas, make_host_collective(kReplicas), 1000);
}

TEST(DeviceBuckets, SumsAreThoseOfOneReductionAtTheEnd) {
  for (const auto& [precision, micro_batch_size] :
       {std::pair{Precision::fp32, 4}, {Precision::bf16, 2}}) {
    for (const MakeCollective make : {on_device, on_host}) {
      const auto train = [&, on = precision, rows = micro_batch_size](int64_t bucket_bytes) {
        testing::FakeDevice device({.max_delay_us = 50});
        Replicas replicas(device, rows, on);
        const auto collective = make(replicas.replicas);
        return replicas.train(*collective, bucket_bytes);
      };
      const std::vector<Trained> whole = train(0);
      EXPECT_TRUE(whole[0] == whole[1]);
      for (const int64_t bytes : {1, 2000}) {
        const std::vector<Trained> cut = train(bytes);
        EXPECT_TRUE(cut[0] == whole[0]) << bytes;
        EXPECT_TRUE(cut[1] == whole[0]) << bytes;
      }
    }
  }
}

// The order of the queue is: bucket, its sum, next bucket. Nothing waits for the device: the host
// queues whole steps while the device is blocked.
TEST(DeviceBuckets, ABucketsSumIsQueuedBeforeTheNextBucketsWork) {
  const auto device = make_host_device();
  HostOpsState states[kReplicas];
  Replicas replicas(*device, 4, Precision::fp32, states);
  const auto collective = on_device(std::span(replicas.replicas).first(1));
  Engine& engine = *replicas.engines[0];
  std::vector<int> launches;  // of graphs, at each sum
  std::vector<BufferRange> ranges;
  EXPECT_TRUE(engine.reduce_in_buckets(1, [&](BufferRange range) {
    launches.push_back(states[0].launches);
    ranges.push_back(range);
    collective->ranges()->start(0, engine.gradient_buffers(), engine.reduced_gradients(), range);
  }));
  const auto step = [&](int number) {
    engine.forward_backward(replicas.batches[static_cast<size_t>(number)].rows());
    collective->ranges()->finish(0);
    apply(engine, {});
  };
  step(0);  // not captured
  launches.clear();
  ranges.clear();
  std::binary_semaphore gate(0);
  engine.stream()->call([&] { gate.acquire(); });
  step(1);
  const int first = launches.front();
  ASSERT_GT(launches.size(), 5u);
  for (size_t bucket = 0; bucket < launches.size(); ++bucket) {
    EXPECT_EQ(launches[bucket], first + static_cast<int>(bucket));
  }
  EXPECT_EQ(states[0].captures, static_cast<int>(launches.size()) + 1);  // and the update
  EXPECT_EQ(ranges.front().end, engine.gradient_buffer_floats());
  EXPECT_EQ(ranges.back().begin, 0);
  gate.release();
  EXPECT_TRUE(engine.step_metrics().finite);
}

// The first bucket's sum is done while the second bucket's work has not run.
TEST(DeviceBuckets, ABucketIsSummedBesideTheRestOfThePass) {
  const auto device = make_host_device();
  Replicas replicas(*device, 4, Precision::fp32);
  std::counting_semaphore<1000> summed(0);
  const auto collective = make_device_collective(std::span(replicas.replicas).first(1),
                                                 [&](Stream& stream, const BufferSum& sum) {
                                                   sum_buffers_on_host(stream, sum);
                                                   stream.call([&] { summed.release(); });
                                                 });
  Engine& engine = *replicas.engines[0];
  std::atomic<int> in_time = 0;
  int buckets = 0;
  engine.reduce_in_buckets(1, [&](BufferRange range) {
    collective->ranges()->start(0, engine.gradient_buffers(), engine.reduced_gradients(), range);
    ++buckets;
    engine.stream()->call([&] {
      if (summed.try_acquire_for(std::chrono::seconds(20))) ++in_time;
    });
  });
  for (int number = 0; number < 2; ++number) {
    engine.forward_backward(replicas.batches[static_cast<size_t>(number)].rows());
    collective->ranges()->finish(0);
    apply(engine, {});
  }
  EXPECT_TRUE(engine.step_metrics().finite);
  EXPECT_EQ(in_time, buckets);
}

TEST(DeviceBuckets, OneReplicaPaysNothing) {
  HostOpsState state;
  const NetSpec net = small_airnet();
  const TestBatch batch = make_batch(net, 4, 3);
  const auto engine = started_device_engine(net, engine_options(4, 4), {}, &state);
  for (int step = 0; step < 3; ++step) device_step(*engine, batch);
  engine->step_metrics();
  EXPECT_EQ(state.captures, 2);
  EXPECT_EQ(state.launches, 2 + 2);
  EXPECT_THROW(engine->reduce_in_buckets(0, {}), std::invalid_argument);
}

}  // namespace
}  // namespace stoker
