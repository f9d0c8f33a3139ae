// Skipping blocks, on every instruction set: the places and predictors after them are those of the
// plain twin. entropy_decoder_test.cc skips what is around a window, too.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <random>

#include "decode/jpeg/entropy_decoder.h"
#include "decode/jpeg/scan_reader.h"
#include "tests/decode/entropy_twin.h"
#include "tests/decode/jpeg_maker.h"

namespace stoker {
namespace {

// Skips the blocks of a grey file in parts of random sizes.
void expect_same_skips(const std::vector<uint8_t>& file, const BaselineJpeg& jpeg,
                       const std::vector<PlainBlock>& expected, std::mt19937& random) {
  HuffmanCache tables;
  ScanReader reader;
  ASSERT_TRUE(reader.open(file, jpeg, tables) && reader.begin());
  const size_t all = static_cast<size_t>(jpeg.mcus_across * jpeg.mcus_down);
  for (size_t done = 0; done < all;) {
    const size_t part = std::min(all - done, size_t{1} + random() % (2 * kSkipChunk + 9));
    done += part;
    ASSERT_EQ(reader.skip(static_cast<int>(part)), done <= expected.size()) << done << " " << part;
    if (done > expected.size()) return;
    int32_t dc = 0;
    ASSERT_EQ(plain_place(file, jpeg, reader, dc), expected[done - 1].end) << done;
    ASSERT_EQ(dc, expected[done - 1].dc) << done;
  }
}

// Skips them one by one.
void expect_same_verdicts(const std::vector<uint8_t>& file, const BaselineJpeg& jpeg,
                          const std::vector<PlainBlock>& expected) {
  HuffmanCache tables;
  ScanReader reader;
  ASSERT_TRUE(reader.open(file, jpeg, tables) && reader.begin());
  for (size_t b = 0; b < 225; ++b) {
    const bool sound = reader.skip(1);
    ASSERT_EQ(sound, b < expected.size()) << "block " << b;
    if (!sound) return;
  }
}

class EntropySkip : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

TEST_P(EntropySkip, SkipsWhatThePlainTwinAccepts) {
  for_each_unusual([](const auto& file, const auto& jpeg, const auto& expected, auto& random) {
    expect_same_skips(file, jpeg, expected, random);
    if (!HasFatalFailure()) expect_same_verdicts(file, jpeg, expected);
  });
}

// AddressSanitizer sees where the decoder stops.
TEST_P(EntropySkip, StopsWithinItsPadding) {
  const std::vector<uint8_t> file = make_longest();
  BaselineJpeg jpeg;
  ASSERT_TRUE(parse_baseline(file, jpeg));
  HuffmanCache tables;
  ScanReader reader;
  ASSERT_TRUE(reader.open(file, jpeg, tables) && reader.begin());
  EXPECT_FALSE(reader.skip(jpeg.mcus_across));
}

INSTANTIATE_TEST_SUITE_P(AllTargets, EntropySkip,
                         ::testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& target) { return hwy::TargetName(target.param); });

}  // namespace
}  // namespace stoker
