#include "train/collective/collective.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/support/wait_until.h"
#include "tests/train/ranks_fixture.h"

namespace stoker {
namespace {

// Values of very different magnitude, so that another order of summation gives other bits.
std::vector<std::vector<float>> parts_of_ranks(int parts, int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> mantissa(-1, 1);
  std::vector<std::vector<float>> values(parts, std::vector<float>(count));
  for (auto& part : values) {
    for (float& value : part) {
      value = std::ldexp(mantissa(generator), static_cast<int>(generator() % 24));
    }
  }
  return values;
}

// Distributes `parts` in order over `size` ranks; returns every rank's result.
std::vector<std::vector<float>> reduce_on_host(const std::vector<std::vector<float>>& parts,
                                               int size) {
  const auto collective = make_host_collective(size);
  std::vector<std::vector<float>> results(size, std::vector<float>(parts[0].size(), -1.0f));
  run_ranks(size, [&](int rank) {
    std::vector<const float*> mine;
    const size_t begin = parts.size() * rank / size, end = parts.size() * (rank + 1) / size;
    for (size_t i = begin; i < end; ++i) mine.push_back(parts[i].data());
    collective->all_reduce(rank, mine, results[rank]);
  });
  return results;
}

TEST(Collective, SumsInPartOrderWhateverTheRanks) {
  for (const int64_t count : {1, 15, 16, 17, 1000, 1024, 5000}) {
    const auto parts = parts_of_ranks(12, count, static_cast<unsigned>(count));
    std::vector<float> expected = parts[0];
    for (size_t part = 1; part < parts.size(); ++part) {
      for (int64_t i = 0; i < count; ++i) expected[i] += parts[part][i];
    }
    for (const int size : {1, 2, 3, 4, 6, 12}) {
      for (const auto& result : reduce_on_host(parts, size)) {
        ASSERT_TRUE(same_bits(result, expected)) << count << " values, " << size << " ranks";
      }
    }
  }
}

TEST(Collective, ManyRoundsKeepTheRanksApart) {
  constexpr int kSize = 4, kRounds = 200;
  const auto collective = make_host_collective(kSize);
  std::atomic<int> wrong{0};
  run_ranks(kSize, [&](int rank) {
    std::vector<float> part(100), result(100);
    const float* parts[] = {part.data()};
    for (int round = 0; round < kRounds; ++round) {
      std::fill(part.begin(), part.end(), static_cast<float>(round + rank));
      collective->all_reduce(rank, parts, result);
      for (const float value : result) wrong += value != static_cast<float>(4 * round + 6);
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(Collective, MayReduceIntoAPart) {
  const auto collective = make_host_collective(2);
  std::vector<std::vector<float>> values = {std::vector<float>(3000, 1),
                                            std::vector<float>(3000, 2)};
  run_ranks(2, [&](int rank) {
    const float* parts[] = {values[rank].data()};
    collective->all_reduce(rank, parts, values[rank]);
  });
  EXPECT_EQ(values[0], std::vector<float>(3000, 3));
  EXPECT_EQ(values[1], std::vector<float>(3000, 3));
}

TEST(Collective, BroadcastsFromAnyRoot) {
  for (int root = 0; root < 3; ++root) {
    const auto collective = make_host_collective(3);
    std::vector<std::vector<float>> values;
    for (int rank = 0; rank < 3; ++rank) values.emplace_back(50, static_cast<float>(rank));
    run_ranks(3, [&](int rank) { collective->broadcast(rank, values[rank], root); });
    for (const auto& each : values) {
      EXPECT_EQ(each, std::vector<float>(50, static_cast<float>(root)));
    }
  }
}

TEST(Collective, BarrierHoldsUntilAllAreThere) {
  const auto collective = make_host_collective(3);
  std::atomic<int> arrived{0}, early{0};
  run_ranks(3, [&](int rank) {
    for (int round = 1; round <= 100; ++round) {
      ++arrived;
      collective->barrier(rank);
      early += arrived.load() < 3 * round;
      collective->barrier(rank);
    }
  });
  EXPECT_EQ(early, 0);
}

TEST(Collective, AbortWakesThoseWhoWaitAndStays) {
  const auto collective = make_host_collective(3);
  std::atomic<int> thrown{0};
  run_ranks(3, [&](int rank) {
    if (rank == 2) {
      be_late(std::chrono::microseconds(1000));  // the others wait in most runs
      collective->abort();
    }
    try {
      collective->barrier(rank);
    } catch (const std::runtime_error&) {
      ++thrown;
    }
  });
  EXPECT_EQ(thrown, 3);
  std::vector<float> values(1);
  EXPECT_THROW(collective->broadcast(0, values, 0), std::runtime_error);
}

TEST(Collective, RefusesASizeBelowOne) {
  EXPECT_THROW(make_host_collective(0), std::invalid_argument);
}

}  // namespace
}  // namespace stoker
