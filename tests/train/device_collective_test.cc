// Tests of collectives on devices, on a host device with random delays: the sums are those of the
// host collective, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/fake_device.h"
#include "tests/support/wait_until.h"
#include "train/collective/device.h"

namespace stoker {
namespace {

using testing::FakeDevice;

constexpr int kCollectiveSteps = 12;

float value_of(int step, int rank, int part, int64_t i) {
  return static_cast<float>((step * 31 + rank * 17 + part * 7 + i * 13) % 1009) / 77.0F - 6.0F;
}

// Returns the host collective's sum of the same parts, in (rank, part) order.
std::vector<float> expected(int step, int ranks, int parts, int64_t count) {
  std::vector<float> sum(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    float total = value_of(step, 0, 0, i);
    for (int part = 1; part < ranks * parts; ++part) {
      total += value_of(step, part / parts, part % parts, i);
    }
    sum[static_cast<size_t>(i)] = total;
  }
  return sum;
}

using CollectiveMaker =
    std::function<std::unique_ptr<Collective>(std::span<const DeviceReplica> replicas)>;

// Runs a replica's loop like the trainer's: it queues the parts, range after range from the end,
// and the collective sums each range while the next is computed; then the stream reads the sum.
// Returns "" or what was wrong.
std::string run_loop(FakeDevice& device, Stream& stream, Collective& collective, int rank,
                     int ranks, int parts, int64_t count, bool in_place, int pieces) {
  std::string wrong;  // written by the stream's work
  std::vector<std::unique_ptr<Memory>> memory;
  std::vector<float*> part;
  for (int i = 0; i <= parts; ++i) {
    memory.push_back(device.allocate(static_cast<size_t>(count) * 4, MemoryKind::device));
    part.push_back(reinterpret_cast<float*>(memory.back()->data()));
  }
  const std::vector<const float*> sources(part.begin(), part.end() - 1);
  float* result = in_place ? part.front() : part.back();
  for (int step = 0; step < kCollectiveSteps; ++step) {
    const std::span<float> sum(result, static_cast<size_t>(count));
    for (int piece = pieces - 1; piece >= 0; --piece) {
      const BufferRange range{count * piece / pieces, count * (piece + 1) / pieces};
      stream.call([&, step, range, piece] {
        be_late(std::chrono::microseconds((step + rank + piece) % 4 * 100));
        for (int p = 0; p < parts; ++p) {
          for (int64_t i = range.begin; i < range.end; ++i)
            part[static_cast<size_t>(p)][i] = value_of(step, rank, p, i);
        }
      });
      if (pieces > 1) collective.ranges()->start(rank, sources, sum, range);
    }
    if (pieces > 1) {
      collective.ranges()->finish(rank);
    } else {
      collective.all_reduce(rank, sources, sum);
    }
    stream.call([&, step] {
      const std::vector<float> wanted = expected(step, ranks, parts, count);
      if (std::memcmp(wanted.data(), result, wanted.size() * 4) != 0 && wrong.empty()) {
        wrong = "rank " + std::to_string(rank) + " step " + std::to_string(step);
      }
    });
  }
  stream.synchronize();
  return wrong;
}

void check(const CollectiveMaker& make, int ranks, int parts, int64_t count, bool in_place,
           uint64_t seed, int pieces) {
  FakeDevice device({.seed = seed, .max_delay_us = 60});
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<DeviceReplica> replicas;
  for (int rank = 0; rank < ranks; ++rank) {
    streams.push_back(device.make_stream());
    replicas.push_back({&device, streams.back().get()});
  }
  const std::unique_ptr<Collective> collective = make(replicas);
  ASSERT_EQ(collective->size(), ranks);
  std::vector<std::string> wrong(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      wrong[static_cast<size_t>(rank)] =
          run_loop(device, *streams[static_cast<size_t>(rank)], *collective, rank, ranks, parts,
                   count, in_place, pieces);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& each : wrong) EXPECT_EQ(each, "");
}

void check_all(const CollectiveMaker& make) {
  for (int ranks : {1, 2, 3}) {
    for (int parts : {1, 2}) {
      for (int64_t count : {1, 100, 1000}) {
        for (bool in_place : {false, true}) {
          SCOPED_TRACE(std::to_string(ranks) + " ranks, " + std::to_string(parts) + " parts of " +
                       std::to_string(count));
          for (int pieces : {1, 3}) {
            check(make, ranks, parts, count, in_place, static_cast<uint64_t>(ranks * 10 + parts),
                  pieces);
          }
        }
      }
    }
  }
}

TEST(DeviceCollective, OnOneDevice) {
  check_all([](std::span<const DeviceReplica> replicas) {
    return make_device_collective(replicas, sum_buffers_on_host);
  });
}

TEST(DeviceCollective, OnTheHost) {
  check_all([](std::span<const DeviceReplica> replicas) {
    return make_staged_collective(replicas, make_host_collective(static_cast<int>(replicas.size())),
                                  256);
  });
}

// A replica's loop with a parameter server, in which every second replica is on another device than
// the first. Rank 0 reads the sum on the server's stream, as an update does, and writes what all
// pull. Returns "" or what was wrong.
class ServedReplicas {
 public:
  ServedReplicas(int ranks, int parts, int64_t count, bool server_on_first, int pieces)
      : parts_(parts),
        count_(count),
        pieces_(pieces),
        late_({.seed = static_cast<uint64_t>(ranks * 10 + parts), .max_delay_us = 60}),
        other_(make_host_device()),
        place_(server_on_first ? static_cast<Device&>(late_) : *other_),
        server_(place_.make_stream()),
        updated_(place_.make_event()),
        sum_(floats_on(place_)),
        weights_(floats_on(place_)) {
    for (int rank = 0; rank < ranks; ++rank) {
      Device& device = rank % 2 == 0 ? static_cast<Device&>(late_) : *other_;
      streams_.push_back(device.make_stream());
      replicas_.push_back({&device, streams_.back().get()});
    }
    collective_ = make_device_collective(replicas_, sum_buffers_on_host,
                                         PushTarget{{&place_, server_.get()}, parts, count});
  }

  void check() {
    ASSERT_EQ(collective_->size(), static_cast<int>(replicas_.size()));
    std::vector<std::string> wrong(replicas_.size());
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < replicas_.size(); ++rank) {
      threads.emplace_back(
          [this, rank, &wrong] { wrong[rank] = run_loop(static_cast<int>(rank)); });
    }
    for (std::thread& thread : threads) thread.join();
    server_->synchronize();
    for (const std::string& each : wrong) EXPECT_EQ(each, "");
    const Traffic traffic = collective_->traffic();
    EXPECT_EQ(traffic,
              (Traffic{kCollectiveSteps * parts_ * count_ * 4 * std::ssize(replicas_), 0, 0, 0}));
  }

 private:
  std::unique_ptr<Memory> floats_on(Device& device) const {
    return device.allocate(static_cast<size_t>(count_) * sizeof(float), MemoryKind::device);
  }
  static float* floats_of(const std::unique_ptr<Memory>& memory) {
    return reinterpret_cast<float*>(memory->data());
  }

  std::string run_loop(int rank) {
    const auto& [device, stream] = replicas_[static_cast<size_t>(rank)];
    std::string wrong;  // written by the stream's work
    std::vector<std::unique_ptr<Memory>> memory;
    std::vector<const float*> sources;
    for (int part = 0; part <= parts_; ++part) {
      memory.push_back(floats_on(*device));
      if (part < parts_) sources.push_back(floats_of(memory.back()));
    }
    float* const pulled = floats_of(memory.back());
    const std::span<float> sum(floats_of(sum_), static_cast<size_t>(count_));
    for (int step = 0; step < kCollectiveSteps; ++step) {
      for (int piece = pieces_ - 1; piece >= 0; --piece) {
        const BufferRange range{count_ * piece / pieces_, count_ * (piece + 1) / pieces_};
        stream->call([&, step, range, piece] {
          be_late(std::chrono::microseconds((step + rank + piece) % 4 * 100));
          for (int part = 0; part < parts_; ++part) {
            float* to = floats_of(memory[static_cast<size_t>(part)]);
            for (int64_t i = range.begin; i < range.end; ++i) to[i] = value_of(step, rank, part, i);
          }
        });
        if (pieces_ > 1) collective_->ranges()->start(rank, sources, sum, range);
      }
      if (pieces_ > 1) {
        collective_->ranges()->finish(rank);
      } else {
        collective_->all_reduce(rank, sources, sum);
      }
      stream->call([&] {  // what follows may overwrite the buffers
        for (int part = 0; part < parts_; ++part) {
          std::fill_n(floats_of(memory[static_cast<size_t>(part)]), count_, -1.0F);
        }
      });
      if (rank == 0) {
        server_->copy(weights_->data(), sum_->data(), sum.size_bytes(), CopyKind::device_to_device);
        server_->record(*updated_);
      }
      collective_->barrier(rank);
      stream->wait(*updated_);
      stream->copy(pulled, weights_->data(), sum.size_bytes(), CopyKind::device_to_device);
      stream->call([&, step] {
        const std::vector<float> wanted =
            expected(step, static_cast<int>(replicas_.size()), parts_, count_);
        if (std::memcmp(wanted.data(), pulled, wanted.size() * 4) != 0 && wrong.empty()) {
          wrong = "rank " + std::to_string(rank) + " step " + std::to_string(step);
        }
      });
    }
    stream->synchronize();
    return wrong;
  }

  const int parts_;
  const int64_t count_;
  const int pieces_;
  FakeDevice late_;
  const std::unique_ptr<Device> other_;
  Device& place_;
  const std::unique_ptr<Stream> server_;
  const std::unique_ptr<Event> updated_;
  const std::unique_ptr<Memory> sum_, weights_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<DeviceReplica> replicas_;
  std::unique_ptr<Collective> collective_;
};

TEST(DeviceCollective, AtAServer) {
  for (const int ranks : {1, 2, 3}) {
    for (const int parts : {1, 2}) {
      for (const bool server_on_first : {true, false}) {
        for (const int pieces : {1, 3}) {
          SCOPED_TRACE(std::to_string(ranks) + " ranks, " + std::to_string(parts) + " parts, " +
                       std::to_string(pieces) + " pieces");
          ServedReplicas(ranks, parts, 1000, server_on_first, pieces).check();
        }
      }
    }
  }
}

// The parts change their size between calls.
TEST(DeviceCollective, StagedPartsOfAnotherSize) {
  FakeDevice device({.max_delay_us = 60});
  auto stream = device.make_stream();
  const DeviceReplica replica = {&device, stream.get()};
  const auto collective =
      make_staged_collective(std::span(&replica, 1), make_host_collective(1), 64);
  for (int64_t count : {10, 300, 20}) {
    EXPECT_EQ(run_loop(device, *stream, *collective, 0, 1, 1, count, false, 1), "");
  }
}

TEST(DeviceCollective, AbortWakesThoseThatWait) {
  FakeDevice device;
  auto stream = device.make_stream();
  const std::vector<DeviceReplica> replicas = {{&device, stream.get()}, {&device, stream.get()}};
  auto memory = device.allocate(400, MemoryKind::device);
  auto* values = reinterpret_cast<float*>(memory->data());
  std::unique_ptr<Collective> collectives[] = {
      make_device_collective(replicas, sum_buffers_on_host),
      make_staged_collective(replicas, make_host_collective(2)),
      make_device_collective(replicas, sum_buffers_on_host, PushTarget{replicas[0], 1, 100})};
  for (const auto& collective : collectives) {
    std::atomic<pid_t> waiter = 0;
    std::thread waiting([&] {
      waiter = gettid();
      const float* part = values;
      EXPECT_THROW(collective->all_reduce(0, std::span(&part, 1), std::span(values, 100)),
                   std::runtime_error);
    });
    EXPECT_TRUE(wait_until([&] { return waiter > 0 && is_asleep(waiter); }));
    collective->abort();
    waiting.join();
  }
  stream->synchronize();
}

TEST(DeviceCollective, TooManyAreRefused) {
  auto device = make_host_device();
  auto stream = device->make_stream();
  const std::vector<DeviceReplica> replicas(BufferSum::kMaxResults + 1,
                                            {device.get(), stream.get()});
  EXPECT_THROW(make_device_collective(replicas, sum_buffers_on_host), std::invalid_argument);
  EXPECT_THROW(make_staged_collective({}, make_host_collective(1)), std::invalid_argument);
  EXPECT_THROW(
      make_device_collective(replicas, sum_buffers_on_host, PushTarget{replicas[0], 8, 100}),
      std::invalid_argument);
  const auto push = make_device_collective(std::span(replicas).first(1), sum_buffers_on_host,
                                           PushTarget{replicas[0], 1, 100});
  std::vector<float> values(99);
  const float* part = values.data();
  EXPECT_THROW(push->all_reduce(0, std::span(&part, 1), values), std::invalid_argument);
}

// On a device, a range is summed before the work that is queued after it has run.
TEST(DeviceCollective, ARangeDoesNotWaitForWhatFollows) {
  auto device = make_host_device();
  auto stream = device->make_stream();
  const DeviceReplica replica = {device.get(), stream.get()};
  std::vector<float> values(100, 1.0F);
  const float* part = values.data();
  std::binary_semaphore summed(0);
  const auto collective =
      make_device_collective(std::span(&replica, 1), [&](Stream& on, const BufferSum& sum) {
        sum_buffers_on_host(on, sum);
        on.call([&] { summed.release(); });
      });
  collective->ranges()->start(0, std::span(&part, 1), values, {50, 100});
  bool beside = false;
  stream->call([&] { beside = summed.try_acquire_for(std::chrono::seconds(20)); });
  collective->ranges()->finish(0);
  stream->synchronize();
  EXPECT_TRUE(beside);
}

TEST(DeviceCollective, BroadcastIsOfHostMemory) {
  auto device = make_host_device();
  auto stream = device->make_stream();
  const DeviceReplica replica = {device.get(), stream.get()};
  const auto collective = make_device_collective(std::span(&replica, 1), sum_buffers_on_host);
  std::vector<float> values = {1, 2};
  collective->broadcast(0, values, 0);
  collective->barrier(0);
  EXPECT_EQ(values[1], 2);
}

}  // namespace
}  // namespace stoker
