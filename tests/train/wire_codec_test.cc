// Tests of how gradients are written for the wire: plain twins, rounding without bias, sizes, and
// what is not finite.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "staging/philox.h"
#include "train/collective/wire/codec.h"

namespace stoker {
namespace {

using Floats = std::vector<float>;
constexpr GradWire kCodecs[] = {GradWire::fp32, GradWire::bf16, GradWire::int8, GradWire::one_bit};

Floats random_floats(int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, 0.01F);
  Floats values(static_cast<size_t>(count));
  for (float& value : values) value = normal(generator);
  return values;
}

Floats there_and_back(GradWire wire, const Floats& values, const WireKey& key = {},
                      int64_t first = 0) {
  const auto count = static_cast<int64_t>(values.size());
  std::vector<std::byte> bytes(static_cast<size_t>(block_bytes(wire, count)) + 1, std::byte{0x5A});
  encode_block(wire, key, first, values, bytes.data());
  EXPECT_EQ(bytes.back(), std::byte{0x5A}) << "written past the end";
  Floats read(values.size());
  decode_block(wire, bytes.data(), read);
  return read;
}

// The same as the codec, value by value.
Floats plain(GradWire wire, const Floats& values, const WireKey& key, int64_t first) {
  Floats read = values;
  double sums[2] = {};
  int counts[2] = {};
  float largest = 0;
  for (const float value : values) {
    largest = std::max(largest, std::fabs(value));
    sums[value >= 0] += value;
    ++counts[value >= 0];
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const float value = values[i];
    if (wire == GradWire::bf16) {
      const float ulp = std::ldexp(1.0F, std::ilogb(value) - 7);
      read[i] = std::nearbyint(value / ulp) * ulp;
    } else if (wire == GradWire::int8) {
      const auto place = static_cast<uint64_t>(first) + i;
      const auto words =
          philox4x32({static_cast<uint32_t>(key.step), 0,
                      2 * static_cast<uint32_t>(key.sender) + (key.sum ? 1U : 0U),
                      static_cast<uint32_t>(place / 8)},
                     {static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)});
      const uint32_t draw = (words[place % 8 / 2] >> (place % 2 * 16)) & 0xFFFF;
      const float steps = value * (127 / largest) + 128 + static_cast<float>(draw) / 65536;
      read[i] = (std::min(std::floor(steps), 255.0F) - 128) * (largest / 127);
    } else if (wire == GradWire::one_bit) {
      read[i] = static_cast<float>(sums[value >= 0] / counts[value >= 0]);
    }
  }
  return read;
}

TEST(WireCodec, IsThatOfAPlainLoop) {
  for (const GradWire wire : kCodecs) {
    for (int64_t count : {1, 7, 8, 9, 17, 250, 256, 1000, 1024}) {
      if (count > block_floats(wire)) continue;
      const WireKey key{0x123456789ABCDEF0, 77, 3, true};
      const Floats values = random_floats(count, static_cast<unsigned>(count));
      const Floats read = there_and_back(wire, values, key, 2048);
      const Floats expected = plain(wire, values, key, 2048);
      for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_NEAR(read[i], expected[i], 1e-6F * std::fabs(expected[i]))
            << to_string(wire) << ' ' << count << " at " << i;
      }
    }
  }
}

TEST(WireCodec, SizesAreThoseOfPackedValues) {
  EXPECT_EQ(block_bytes(GradWire::fp32, 1024), 4096);
  EXPECT_EQ(block_bytes(GradWire::bf16, 1024), 2048);
  EXPECT_EQ(block_bytes(GradWire::int8, 1024), 1028);
  EXPECT_EQ(block_bytes(GradWire::one_bit, 256), 40);
  EXPECT_EQ(block_bytes(GradWire::one_bit, 9), 10);
}

// A value and its rounded ones have the same mean: over n keys it differs by less than five
// standard errors.
TEST(WireCodec, Int8RoundsWithoutBias) {
  constexpr int kKeys = 4000;
  const Floats values = {1.0F, -1.0F, 0.3F, -0.3F, 0.001F, -0.001F, 0.5F / 127, 0.0F, 0.999F};
  std::vector<double> sums(values.size());
  for (int step = 0; step < kKeys; ++step) {
    const Floats read = there_and_back(GradWire::int8, values, {5, step, 1, false});
    for (size_t i = 0; i < values.size(); ++i) {
      sums[i] += read[i];
      ASSERT_LE(std::fabs(read[i] - values[i]), 1.0001F / 127);
    }
  }
  const double most = 5 * 0.5 / 127 / std::sqrt(kKeys);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(sums[i] / kKeys, values[i], most) << i;
  // Values that need no rounding are not rounded.
  EXPECT_EQ(sums[0], kKeys);
  EXPECT_EQ(sums[7], 0);
}

TEST(WireCodec, Int8FollowsFromItsKeyAlone) {
  const Floats values = random_floats(1024, 1);
  const WireKey key{9, 4, 2, false};
  const Floats read = there_and_back(GradWire::int8, values, key, 1024);
  EXPECT_EQ(there_and_back(GradWire::int8, values, key, 1024), read);
  EXPECT_NE(there_and_back(GradWire::int8, values, {8, 4, 2, false}, 1024), read);
  EXPECT_NE(there_and_back(GradWire::int8, values, {9, 5, 2, false}, 1024), read);
  EXPECT_NE(there_and_back(GradWire::int8, values, {9, 4, 1, false}, 1024), read);
  EXPECT_NE(there_and_back(GradWire::int8, values, {9, 4, 2, true}, 1024), read);
  EXPECT_NE(there_and_back(GradWire::int8, values, key, 0), read);
}

TEST(WireCodec, Bf16RoundsToEvenAndKeepsWhatIsNoNumber) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("1");
  const Floats read = there_and_back(
      GradWire::bf16, {1 + 0x1p-8F, 1 + 0x3p-8F, -1 - 0x1p-8F, inf, -inf, nan, 0.0F, -0.0F});
  EXPECT_EQ(read[0], 1.0F);
  EXPECT_EQ(read[1], 1 + 0x1p-6F);
  EXPECT_EQ(read[2], -1.0F);
  EXPECT_EQ(read[3], inf);
  EXPECT_EQ(read[4], -inf);
  EXPECT_TRUE(std::isnan(read[5]));
  EXPECT_TRUE(std::signbit(read[7]) && !std::signbit(read[6]));
}

TEST(WireCodec, AValueThatIsNotFiniteReachesTheReader) {
  for (const GradWire wire : {GradWire::int8, GradWire::one_bit}) {
    for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()}) {
      for (const size_t place : {size_t{0}, size_t{100}, size_t{200}}) {
        Floats values = random_floats(201, 3);
        values[place] = bad;
        for (const float value : there_and_back(wire, values)) ASSERT_TRUE(std::isnan(value));
      }
    }
  }
}

TEST(WireCodec, ZerosStayZeros) {
  for (const GradWire wire : kCodecs) {
    EXPECT_EQ(there_and_back(wire, Floats(200, 0.0F)), Floats(200, 0.0F)) << to_string(wire);
  }
  // So small that no scale can be divided by: error feedback keeps them.
  EXPECT_EQ(there_and_back(GradWire::int8, Floats(20, 1e-38F)), Floats(20, 0.0F));
}

TEST(WireLayout, BlocksCoverTheBufferOnce) {
  for (const GradWire wire : kCodecs) {
    for (const auto& [gradients, floats] : {std::pair<int64_t, int64_t>{0, 5},
                                            {1, 1},
                                            {1024, 1030},
                                            {1025, 4000},
                                            {256, 256},
                                            {5000, 7100}}) {
      const WireLayout layout(wire, gradients, floats);
      int64_t at = 0, bytes = 0;
      for (int64_t b = 0; b < layout.blocks(); ++b) {
        const WireLayout::Block block = layout.block(b);
        EXPECT_EQ(block.range.begin, at);
        EXPECT_GT(block.range.end, at);
        EXPECT_EQ(block.wire, at < gradients ? wire : GradWire::fp32);
        EXPECT_EQ(layout.byte_of(b), bytes);
        bytes += block_bytes(block.wire, block.range.end - block.range.begin);
        at = block.range.end;
      }
      EXPECT_EQ(at, floats);
      EXPECT_EQ(layout.bytes(), bytes);
    }
  }
  EXPECT_EQ(WireLayout(GradWire::int8, 1025, 1030).bytes(), 1028 + 5 + 20);
}

}  // namespace
}  // namespace stoker
