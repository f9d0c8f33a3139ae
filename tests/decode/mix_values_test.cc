// Weighted means of rows: every instruction set gives the bytes of the definition.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "decode/pixel_ops.h"
#include "tests/decode/every_target.h"

namespace stoker {
namespace {

using MixValues = EveryTarget;

// The plain twin: the definition itself, in integers that nothing overflows.
uint8_t mean_of(int share, uint8_t own, uint8_t other) {
  const int64_t sum = int64_t{share} * own + int64_t{kMixParts - share} * other;
  return static_cast<uint8_t>((sum + kMixParts / 2) / kMixParts);
}

TEST_P(MixValues, AreTheDefinitionForAllPairsOfValues) {
  std::vector<uint8_t> own, other;
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      own.push_back(static_cast<uint8_t>(a));
      other.push_back(static_cast<uint8_t>(b));
    }
  }
  std::vector<int> shares = {0, 1, 63, 64, 65, 16383, 16384, 16385, 32766, 32767, 32768};
  std::mt19937 random(1);
  for (int i = 0; i < 20; ++i) shares.push_back(static_cast<int>(random() % (kMixParts + 1)));
  for (const int share : shares) {
    std::vector<uint8_t> mixed = own, expected = own;
    mix_values(share, other.data(), other.size(), mixed.data());
    for (size_t i = 0; i < own.size(); ++i) expected[i] = mean_of(share, own[i], other[i]);
    ASSERT_EQ(mixed, expected) << share;
  }
}

TEST_P(MixValues, TouchNothingBehindTheLast) {
  std::mt19937 random(2);
  for (size_t count = 0; count < 200; ++count) {
    std::vector<uint8_t> own(count + 64), other(count + 64);
    for (uint8_t& value : own) value = static_cast<uint8_t>(random());
    for (uint8_t& value : other) value = static_cast<uint8_t>(random());
    std::vector<uint8_t> expected = own;
    const int share = static_cast<int>(random() % kMixParts);
    for (size_t i = 0; i < count; ++i) expected[i] = mean_of(share, own[i], other[i]);
    mix_values(share, other.data(), count, own.data());
    ASSERT_EQ(own, expected) << count << " values, share " << share;
  }
}

TEST_P(MixValues, OfEachOtherAreThoseOfTheValuesAsTheyWere) {
  std::mt19937 random(3);
  for (const int first_share : {0, 1, 9000, 32767, kMixParts}) {
    for (const int second_share : {0, 12345, 32767, kMixParts}) {
      for (size_t count = 0; count < 140; count += 1 + count / 70) {
        std::vector<uint8_t> first(count + 64), second(count + 64);
        for (uint8_t& value : first) value = static_cast<uint8_t>(random());
        for (uint8_t& value : second) value = static_cast<uint8_t>(random());
        std::vector<uint8_t> first_expected = first, second_expected = second;
        for (size_t i = 0; i < count; ++i) {
          first_expected[i] = mean_of(first_share, first[i], second[i]);
          second_expected[i] = mean_of(second_share, second[i], first[i]);
        }
        mix_each_other(first_share, first.data(), second_share, second.data(), count);
        ASSERT_EQ(first, first_expected) << count << ", " << first_share << ", " << second_share;
        ASSERT_EQ(second, second_expected) << count << ", " << first_share << ", " << second_share;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, MixValues, every_target(), target_name);

}  // namespace
}  // namespace stoker
