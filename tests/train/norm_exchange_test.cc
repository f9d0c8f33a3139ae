#include "train/collective/norm_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/train/ranks_fixture.h"

namespace stoker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Every replica's threads take micro-batches from its counter, as the engine's workers do.
TEST(NormExchange, GivesAllRanksTheNumbersOfAll) {
  constexpr int kRanks = 3, kMicroBatches = 5, kRounds = 40;
  NormExchange exchange(kRanks, kMicroBatches, 4);
  std::atomic<int> wrong{0}, met{0};
  std::vector<std::atomic<int>> next(kRanks);
  const auto number = [](int rank, int micro_batch, int round) {
    return static_cast<float>(1000 * rank + 100 * micro_batch + round);
  };
  // Replicas of one, two and three threads.
  const std::vector<int> ranks = {0, 1, 1, 2, 2, 2};
  run_ranks(static_cast<int>(ranks.size()), [&](int thread) {
    const int rank = ranks[static_cast<size_t>(thread)];
    for (int k = next[rank]++; k < kMicroBatches; k = next[rank]++) {
      for (int round = 0; round < kRounds; ++round) {
        const std::vector<float> few = {number(rank, k, round)};
        const std::vector<float> more(round % 4, static_cast<float>(rank));
        const std::span<const float> all = exchange.gather({rank, k, round}, {few, more});
        const size_t own = 1 + more.size();
        wrong += all.size() != kRanks * own;
        for (int other = 0; other < kRanks; ++other) {
          const std::span<const float> theirs = all.subspan(other * own, own);
          wrong += theirs[0] != number(other, k, round);
          wrong += own > 1 && theirs[own - 1] != static_cast<float>(other);
        }
        ++met;
      }
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(met, kRanks * kMicroBatches * kRounds);
}

// Also of numbers that are far from 0, where E[x^2] - E[x]^2 has no digits left.
TEST(NormExchange, UnitesStatistics) {
  constexpr int kRanks = 4, kRows = 6;
  for (const double offset : {0.0, 1e4}) {
    std::vector<double> all;
    std::vector<float> gathered;
    for (int rank = 0; rank < kRanks; ++rank) {
      double mean = 0, variance = 0;
      std::vector<double> own;
      for (int i = 0; i < kRows; ++i) own.push_back(offset + std::sin(3.0 * rank + i) + rank);
      for (const double x : own) mean += x / kRows;
      for (const double x : own) variance += (x - mean) * (x - mean) / kRows;
      all.insert(all.end(), own.begin(), own.end());
      const auto m = static_cast<float>(mean), v = static_cast<float>(variance);
      gathered.insert(gathered.end(), {m, -m, v, 4 * v});
    }
    double mean = 0, variance = 0;
    for (const double x : all) mean += x / (kRanks * kRows);
    for (const double x : all) variance += (x - mean) * (x - mean) / (kRanks * kRows);
    std::vector<float> means(2), variances(2);
    unite_statistics(gathered, kRanks, means, variances);
    const double near = 1e-6 * (1 + offset);
    EXPECT_NEAR(means[0], mean, near);
    EXPECT_NEAR(means[1], -mean, near);
    EXPECT_NEAR(variances[0], variance, near);
    // Within ranks four times as much, between them the same.
    double within = 0;
    for (int rank = 0; rank < kRanks; ++rank) within += gathered[4 * rank + 2] / kRanks;
    EXPECT_NEAR(variances[1], variance + 3 * within, near);
  }
}

TEST(NormExchange, OneRankKeepsItsStatistics) {
  std::vector<float> means(2), variances(2);
  const std::vector<float> own = {0.1f, -3, 0.7f, 1e-30f};
  unite_statistics(own, 1, means, variances);
  EXPECT_THAT(means, ElementsAre(0.1f, -3));
  EXPECT_THAT(variances, ElementsAre(0.7f, 1e-30f));
}

// 1e8 + 1 is 1e8 in fp32, so another order gives another sum.
TEST(NormExchange, AddsUpInTheOrderOfRanks) {
  const std::vector<float> gathered = {1e8f, 1, 2, 1, 1e8f, 20, -1e8f, -1e8f, 200};
  std::vector<float> a(1), b(2);
  add_up(gathered, 3, {a, b});
  EXPECT_THAT(a, ElementsAre(0));
  EXPECT_THAT(b, ElementsAre(0, 222));
}

TEST(NormExchange, AbortWakesThoseWhoWaitInAnyMicroBatch) {
  NormExchange exchange(3, 2, 1);
  const std::vector<float> one(1);
  std::atomic<int> begun{0};
  std::vector<std::string> reasons(5);
  const auto reason_of = [&](int rank, int micro_batch) {
    try {
      exchange.gather({rank, micro_batch, 0}, {one});
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string("met");
  };
  run_ranks(5, [&](int thread) {
    if (thread < 4) {  // two ranks, in both micro-batches; the third never comes
      ++begun;
      reasons[thread] = reason_of(thread / 2, thread % 2);
    } else {
      while (begun < 4) std::this_thread::yield();
      exchange.abort("rank 2 has failed");
      exchange.abort("something else");
      reasons[4] = reason_of(2, 1);
    }
  });
  EXPECT_THAT(reasons, ::testing::Each("rank 2 has failed"));
}

TEST(NormExchangeDeathTest, RanksThatAreNotInTheSameStepEndTheProgram) {
  const std::vector<float> one(1), two(2);
  const auto meet = [](int step, std::span<const float> a, std::span<const float> b) {
    NormExchange exchange(2, 1, 2);
    std::thread other([&] { exchange.gather({1, 0, 7}, {b}); });
    exchange.gather({0, 0, step}, {a});
    other.join();
  };
  meet(7, one, one);
  EXPECT_DEATH(meet(8, one, one), "another replica is in another step");
  EXPECT_DEATH(meet(7, two, one), "another replica is in another step");
  NormExchange exchange(2, 1, 2);
  EXPECT_DEATH(exchange.gather({0, 0, 0}, {one, two}), "too many numbers .rank 0, micro-batch 0");
  EXPECT_DEATH(exchange.gather({0, 1, 0}, {one}), "there is no such micro-batch");
  EXPECT_DEATH(exchange.gather({2, 0, 0}, {one}), "there is no such rank");
}

}  // namespace
}  // namespace stoker
