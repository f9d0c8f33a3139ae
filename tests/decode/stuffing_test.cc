// Taking out byte stuffing and counting it, on every instruction set.

// So that the list of instruction sets has the one with AVX-512 VBMI2, which stuffing.cc uses.
#define HWY_WANT_AVX3_DL

#include "decode/jpeg/stuffing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/decode/every_target.h"

namespace stoker {
namespace {

using Stuffing = EveryTarget;

TEST_P(Stuffing, TakesStuffingOutUpToTheMarker) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<uint8_t> plain(random() % 700), stuffed;
    for (uint8_t& byte : plain) {
      byte = random() % (1 + trial % 9 * (trial % 9)) == 0 ? 0xFF : static_cast<uint8_t>(random());
      stuffed.push_back(byte);
      if (byte == 0xFF) stuffed.push_back(0);
    }
    const size_t data_size = stuffed.size();
    const bool has_marker = trial % 2 == 0;
    if (has_marker) {
      stuffed.insert(stuffed.end(), {0xFF, 0xD9});
      stuffed.resize(stuffed.size() + random() % 100, 0x55);
    }
    std::vector<uint8_t> out(stuffed.size() + kUnstuffedPadding);
    uint8_t* to = out.data();
    const uint8_t* begin = stuffed.data();
    const uint8_t* end = copy_unstuffed(begin, begin + stuffed.size(), to);
    EXPECT_EQ(end - begin, static_cast<ptrdiff_t>(data_size));
    out.resize(static_cast<size_t>(to - out.data()));
    ASSERT_EQ(out, plain) << trial;
  }
}

TEST_P(Stuffing, IsCounted) {
  std::mt19937 random(8);
  std::vector<uint8_t> bytes(700);
  for (uint8_t& byte : bytes) byte = random() % 3 == 0 ? 0xFF : static_cast<uint8_t>(random());
  for (size_t at = 0; at < 80; ++at) {
    for (size_t count = 0; at + count <= bytes.size(); count += count < 140 ? 1 : 37) {
      const auto begin = bytes.begin() + static_cast<ptrdiff_t>(at);
      EXPECT_EQ(count_ff(bytes.data() + at, count),
                std::count(begin, begin + static_cast<ptrdiff_t>(count), 0xFF));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllTargets, Stuffing, every_target(), target_name);

}  // namespace
}  // namespace stoker
