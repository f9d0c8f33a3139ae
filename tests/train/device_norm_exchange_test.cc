#include "train/collective/device_norm_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/fake_device.h"
#include "tests/support/wait_until.h"
#include "tests/train/ranks_fixture.h"

namespace stoker {
namespace {

using testing::FakeDevice;

// An exchange and a stream for each rank, dealt to devices on which all is late.
class Ranks {
 public:
  Ranks(int ranks, int64_t most, int devices = 1, uint64_t seed = 1) {
    for (int i = 0; i < devices; ++i) {
      devices_.push_back(std::make_unique<FakeDevice>(
          testing::FakeDeviceOptions{.name = "fake:" + std::to_string(i),
                                     .seed = seed + 10 * static_cast<uint64_t>(i),
                                     .max_delay_us = 40}));
    }
    exchange_ = std::make_unique<DeviceNormExchange>(ranks, most);
    for (int rank = 0; rank < ranks; ++rank) {
      FakeDevice& device = *devices_[static_cast<size_t>(rank % devices)];
      streams_.push_back(device.make_stream());
      exchange_->join(rank, {&device, streams_.back().get()});
    }
  }
  ~Ranks() { exchange_.reset(); }

  FakeDevice& device(int i) { return *devices_[static_cast<size_t>(i)]; }
  DeviceNormExchange& exchange() { return *exchange_; }
  Stream& stream(int rank) { return *streams_[static_cast<size_t>(rank)]; }
  void end_exchange() { exchange_.reset(); }

 private:
  std::vector<std::unique_ptr<FakeDevice>> devices_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::unique_ptr<DeviceNormExchange> exchange_;
};

float number(int rank, int round, int64_t i) {
  return static_cast<float>(1000 * rank + 10 * round + i);
}

struct Placement {
  int ranks = 1, devices = 1;
};

class DeviceNormExchangeOn : public ::testing::TestWithParam<Placement> {};

// Some ranks are slow to write, and others to read, so that a memory that is used again too early
// has the numbers of another round.
TEST_P(DeviceNormExchangeOn, GivesAllRanksTheNumbersOfAllInEachRound) {
  constexpr int kRounds = 30;
  const int ranks = GetParam().ranks, devices = GetParam().devices;
  Ranks all(ranks, 7, devices, static_cast<uint64_t>(ranks));
  std::atomic<int> wrong{0}, read{0};
  run_ranks(ranks, [&](int rank) {
    for (int round = 0; round < kRounds; ++round) {
      const int64_t count = 1 + round % 7;
      float* own = all.exchange().place(rank, count);
      all.stream(rank).call([=] {
        if ((rank + round) % 3 == 0) be_late(std::chrono::microseconds(150));
        for (int64_t i = 0; i < count; ++i) own[i] = number(rank, round, i);
      });
      const auto [floats, stride] = all.exchange().meet(rank, round);
      // Numbers that nobody gets, longer than those of the next round, come before these are read.
      float* unused = all.exchange().place(rank, 7);
      all.stream(rank).call([=] {
        if ((rank + round) % 3 == 2) be_late(std::chrono::microseconds(150));
        std::fill_n(unused, 7, -1.0f);
      });
      all.stream(rank).call([=, floats = floats, stride = stride, &wrong, &read] {
        if ((rank + round) % 3 == 1) be_late(std::chrono::microseconds(150));
        for (int other = 0; other < ranks; ++other) {
          for (int64_t i = 0; i < count; ++i) {
            wrong += floats[other * stride + i] != number(other, round, i);
          }
        }
        ++read;
      });
    }
    all.stream(rank).synchronize();
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(read, ranks * kRounds);
  // One device copies nothing. Of several, each replica's copies its numbers, and those of all.
  int64_t copies = 0;
  for (int i = 0; i < devices; ++i) copies += all.device(i).copies();
  EXPECT_EQ(copies, devices == 1 ? 0 : 2 * ranks * kRounds);
  EXPECT_EQ(all.exchange().through_host(), devices > 1);
  all.end_exchange();
  for (int i = 0; i < devices; ++i) EXPECT_EQ(all.device(i).bytes_written_after_free(), 0);
}

INSTANTIATE_TEST_SUITE_P(OneDevice, DeviceNormExchangeOn,
                         ::testing::Values(Placement{1, 1}, Placement{2, 1}, Placement{3, 1},
                                           Placement{5, 1}));
INSTANTIATE_TEST_SUITE_P(SeveralDevices, DeviceNormExchangeOn,
                         ::testing::Values(Placement{2, 2}, Placement{5, 2}, Placement{4, 4}));

// Work may still read the memory when the exchange goes.
TEST(DeviceNormExchange, KeepsItsMemoryUntilAllHaveReadIt) {
  for (const int devices : {1, 2}) {
    Ranks all(2, 1, devices);
    std::atomic<int> right{0};
    run_ranks(2, [&](int rank) {
      float* own = all.exchange().place(rank, 1);
      all.stream(rank).call([=] { *own = number(rank, 1, 0); });
      const DeviceNormExchange::Numbers got = all.exchange().meet(rank, 1);
      all.stream(rank).call([=, &right] {
        be_late(std::chrono::microseconds(1000));
        right += got.floats[0] == number(0, 1, 0) && got.floats[got.stride] == number(1, 1, 0);
      });
    });
    all.end_exchange();
    EXPECT_EQ(right, 2) << devices;
  }
}

TEST(DeviceNormExchange, AbortWakesThoseWhoWait) {
  Ranks all(3, 1, 2);
  std::atomic<int> begun{0};
  std::vector<std::string> reasons(3);
  const auto reason_of = [&](int rank) {
    try {
      all.exchange().place(rank, 1);
      ++begun;
      all.exchange().meet(rank, 0);
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string("met");
  };
  run_ranks(3, [&](int rank) {
    if (rank == 2) {
      while (begun < 2) std::this_thread::yield();
      all.exchange().abort("rank 2 has failed");
    }
    reasons[static_cast<size_t>(rank)] = reason_of(rank);
  });
  EXPECT_THAT(reasons, ::testing::Each("rank 2 has failed"));
}

TEST(DeviceNormExchangeDeathTest, RanksThatAreNotInTheSameStepEndTheProgram) {
  const auto meet = [](int step, int64_t a, int64_t b) {
    Ranks all(2, 2);
    run_ranks(2, [&](int rank) {
      all.exchange().place(rank, rank == 0 ? a : b);
      all.exchange().meet(rank, rank == 0 ? step : 7);
    });
  };
  meet(7, 1, 1);
  EXPECT_DEATH(meet(8, 1, 1), "another replica is in another step");
  EXPECT_DEATH(meet(7, 2, 1), "another replica is in another step");
  EXPECT_DEATH(meet(7, 3, 1), "too many numbers .rank 0");
  DeviceNormExchange nobody(2, 2);
  EXPECT_DEATH(nobody.place(1, 1), "not all have joined .rank 1");
}

}  // namespace
}  // namespace stoker
