// The ring's sums, on devices whose copies and events are late.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "bench/suite/throttled_run.h"
#include "tests/support/fake_device.h"

namespace stoker {
namespace {

using ::stoker::testing::FakeDevice;

constexpr int64_t kRingFloats = 1003;

struct Member {
  std::unique_ptr<FakeDevice> device;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Memory> gradients, result;
  float* at(const std::unique_ptr<Memory>& memory) const {
    return reinterpret_cast<float*>(memory->data());
  }
};

// All ranks have the sum of whole numbers, which is exact in any order; twice, because a second sum
// reuses all memory.
TEST(DeviceRing, EveryRankGetsTheSumOfAllRanges) {
  for (const int ranks : {1, 2, 3, 5}) {
    std::vector<Member> members;
    std::vector<DeviceReplica> replicas;
    for (int rank = 0; rank < ranks; ++rank) {
      Member member;
      member.device = std::make_unique<FakeDevice>(
          testing::FakeDeviceOptions{.seed = static_cast<uint64_t>(rank + 1)});
      member.stream = member.device->make_stream();
      const size_t bytes = kRingFloats * sizeof(float);
      member.gradients = member.device->allocate(bytes, MemoryKind::device);
      member.result = member.device->allocate(bytes, MemoryKind::device);
      replicas.push_back({member.device.get(), member.stream.get()});
      members.push_back(std::move(member));
    }
    {
      DeviceRing ring(replicas, kRingFloats);
      std::vector<std::jthread> threads;
      for (int rank = 0; rank < ranks; ++rank) {
        threads.emplace_back([&, rank] {
          const Member& own = members[rank];
          for (const int step : {1, 2}) {
            own.stream->call([&own, rank, step] {
              float* values = own.at(own.gradients);
              for (int64_t i = 0; i < kRingFloats; ++i) {
                values[i] = static_cast<float>(step * (rank + 1) * (i % 100));
              }
            });
            // As buckets come: from the end, and the last one smaller than the number of ranks.
            int64_t end = kRingFloats;
            for (const int64_t begin : {int64_t{500}, int64_t{2}, int64_t{0}}) {
              ring.start(rank, own.at(own.gradients), own.at(own.result), {begin, end});
              end = begin;
            }
            ring.finish(rank);
            own.stream->call([&own, ranks, step] {
              const float all = static_cast<float>(ranks * (ranks + 1) / 2 * step);
              for (int64_t i = 0; i < kRingFloats; ++i) {
                ASSERT_EQ(own.at(own.result)[i], all * static_cast<float>(i % 100)) << i;
              }
            });
          }
          own.stream->synchronize();
        });
      }
    }
    for (const Member& member : members) {
      EXPECT_EQ(member.device->bytes_written_after_free(), 0);
    }
  }
}

TEST(DeviceRing, NeedsADevice) { EXPECT_THROW(DeviceRing({}, 1), std::invalid_argument); }

}  // namespace
}  // namespace stoker
