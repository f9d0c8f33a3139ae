#include "pipeline/random/random_key.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

namespace stoker {
namespace {

using Block = std::array<uint32_t, 4>;

// The known-answer vectors of Random123 (kat_vectors, philox4x32 10).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// Every bit of every input matters, and neighbours do not collide: with a key of seed + index, for
// example, seed 1, sample 0 would get the numbers of seed 0, sample 1.
TEST(RandomKey, NoInputAliasesAnother) {
  std::set<uint64_t> seen;
  size_t made = 0;
  std::vector<uint64_t> values = {0, 1, 2, 3, 0xffffffff};
  for (int bit : {5, 31, 32, 33, 47, 63}) values.push_back(uint64_t{1} << bit);
  for (uint64_t seed : values) {
    for (uint64_t epoch : values) {
      for (uint64_t sample : values) {
        for (uint32_t draw : {0u, 1u, 2u, 0x80000000u}) {
          const RandomKey key(seed, static_cast<int64_t>(epoch), static_cast<int64_t>(sample));
          seen.insert(key.bits(draw));
          ++made;
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), made);
}

TEST(RandomKey, OneBitOfAnyInputChangesHalfTheBits) {
  double flipped = 0;
  int pairs = 0;
  for (int bit = 0; bit < 64; ++bit) {
    const uint64_t mask = uint64_t{1} << bit;
    const auto signed_mask = static_cast<int64_t>(mask);
    for (uint64_t i = 0; i < 50; ++i) {
      const auto n = static_cast<int64_t>(i);
      const uint64_t base = RandomKey(i, n, n).bits(0);
      flipped += std::popcount(base ^ RandomKey(i ^ mask, n, n).bits(0));
      flipped += std::popcount(base ^ RandomKey(i, n ^ signed_mask, n).bits(0));
      flipped += std::popcount(base ^ RandomKey(i, n, n ^ signed_mask).bits(0));
      flipped += std::popcount(base ^ RandomKey(i, n, n).bits(1u << (bit % 32)));
      pairs += 4;
    }
  }
  EXPECT_NEAR(flipped / pairs, 32.0, 5 * 4.0 / std::sqrt(pairs));  // one pair deviates by 4 bits
}

TEST(RandomKey, NeighbouringSeedsAreUncorrelated) {
  constexpr int kCount = 20000;
  double product_sum = 0;
  for (int i = 0; i < kCount; ++i) {
    product_sum += (RandomKey(7, 0, i).uniform(0) - 0.5) * (RandomKey(8, 0, i).uniform(0) - 0.5);
  }
  const double correlation = product_sum / kCount * 12;
  EXPECT_LT(std::abs(correlation), 5 / std::sqrt(kCount));
}

TEST(RandomKey, ManyDrawsAreThoseOfOneByOne) {
  for (const int64_t epoch : {int64_t{3}, int64_t{5} << 40}) {
    const RandomKey key(uint64_t{7} << 33 | 1, epoch, int64_t{9} << 34 | 2);
    std::vector<uint64_t> draws(77), expected(77);
    for (uint32_t i = 0; i < 77; ++i) expected[i] = key.bits(13 + i);
    key.bits(13, draws);
    EXPECT_EQ(draws, expected) << epoch;
  }
}

TEST(RandomKey, UniformIsUniform) {
  constexpr int kCount = 200000, kBins = 100;
  std::vector<int> bins(kBins);
  for (int i = 0; i < kCount; ++i) {
    const double value = RandomKey(1, 2, i).uniform(3);
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    ++bins[static_cast<size_t>(value * kBins)];
  }
  double chi_square = 0;
  for (int count : bins) chi_square += std::pow(count - kCount / kBins, 2) / (kCount / kBins);
  EXPECT_LT(chi_square, 170);  // 99 degrees of freedom: p < 1e-5
  EXPECT_GT(chi_square, 50);
}

TEST(RandomKey, UniformOfAnEmptyOrTinyRangeStaysInside) {
  EXPECT_EQ(RandomKey(1, 2, 3).uniform(0, 5.0, 5.0), 5.0);
  const double high = std::nextafter(1.0, 2.0);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(RandomKey(1, 2, i).uniform(0, 1.0, high), 1.0);
}

TEST(RandomKey, BelowCoversItsRangeEvenly) {
  constexpr int kCount = 70000;
  std::vector<int> counts(7);
  for (int i = 0; i < kCount; ++i) ++counts[static_cast<size_t>(RandomKey(1, i, 0).below(0, 7))];
  for (int count : counts) EXPECT_NEAR(count, 10000, 5 * 93);
  EXPECT_EQ(RandomKey(1, 1, 1).below(0, 1), 0);
  const int64_t huge = std::numeric_limits<int64_t>::max();
  int64_t largest = 0;
  for (int i = 0; i < 100; ++i) largest = std::max(largest, RandomKey(1, i, 0).below(0, huge));
  EXPECT_GT(largest, huge / 4 * 3);
}

TEST(RandomKey, NormalHasItsMoments) {
  constexpr int kCount = 200000;
  double sum = 0, squares = 0, fourths = 0;
  for (int i = 0; i < kCount; ++i) {
    const double value = RandomKey(4, 0, i).normal(1);
    ASSERT_TRUE(std::isfinite(value));
    sum += value;
    squares += value * value;
    fourths += value * value * value * value;
  }
  EXPECT_NEAR(sum / kCount, 0, 5 / std::sqrt(kCount));
  EXPECT_NEAR(squares / kCount, 1, 5 * std::sqrt(2.0 / kCount));
  EXPECT_NEAR(fourths / kCount, 3, 5 * std::sqrt(96.0 / kCount));
}

}  // namespace
}  // namespace stoker
