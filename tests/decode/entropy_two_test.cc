// Storing two runs of MCUs at once, on every instruction set: the coefficients are libjpeg's, and
// the verdicts are those of the plain twin on each.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <random>

#include "decode/jpeg/entropy_decoder.h"
#include "decode/jpeg/scan_reader.h"
#include "tests/decode/entropy_rows.h"
#include "tests/decode/entropy_twin.h"
#include "tests/decode/jpeg_maker.h"
#include "tests/decode/jpeg_recoder.h"

namespace stoker {
namespace {

// Decodes a window of the file two rows of MCUs at once, as if there was a seek index.
void expect_same_pairs_of_rows(const std::vector<uint8_t>& file, uint32_t seed) {
  const Coefficients expected = read_coefficients(file);
  BaselineJpeg jpeg;
  ASSERT_TRUE(parse_baseline(file, jpeg));
  std::mt19937 random(seed);
  const int left = static_cast<int>(random() % jpeg.mcus_across);
  const int width = 1 + static_cast<int>(random() % (jpeg.mcus_across - left));
  const int right = jpeg.mcus_across - left - width;
  HuffmanCache tables(seed % 2 == 0 ? kAcBits : kMaxAcBits);
  ScanReader upper, lower;
  ASSERT_TRUE(upper.open(file, jpeg, tables) && upper.begin());
  lower.open(upper);
  ASSERT_TRUE(lower.begin() && lower.skip(jpeg.mcus_across));
  RowBuffer of_upper(jpeg, width), of_lower(jpeg, width);
  for (int row = 0; row + 1 < jpeg.mcus_down; row += 2) {
    of_upper.attach(upper);
    of_lower.attach(lower);
    ASSERT_TRUE(upper.skip(left) && lower.skip(left)) << row;
    ASSERT_TRUE(ScanReader::store_both(upper, lower, 0, width)) << row;
    expect_row(jpeg, of_upper, expected, row, left, width);
    expect_row(jpeg, of_lower, expected, row + 1, left, width);
    if (::testing::Test::HasFatalFailure() || row + 3 >= jpeg.mcus_down) return;
    ASSERT_TRUE(upper.skip(right + jpeg.mcus_across) && lower.skip(right + jpeg.mcus_across));
  }
}

class EntropyTwo : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

TEST_P(EntropyTwo, GivesLibjpegsCoefficients) { for_each_coding(expect_same_pairs_of_rows); }

TEST_P(EntropyTwo, GivesLibjpegsCoefficientsOfNoise) {
  const std::vector<uint8_t> file = make_noise();
  for (uint32_t seed = 0; seed < 20; ++seed) expect_same_pairs_of_rows(file, seed);
}

TEST_P(EntropyTwo, GivesLibjpegsCoefficientsOfRealFiles) {
  for_each_real_file(expect_same_pairs_of_rows);
}

// Two streams at once: sound together only if both are.
TEST_P(EntropyTwo, StoresTwoStreamsAsEachAlone) {
  std::mt19937 random(11);
  JpegKind kind;
  kind.colours = JpegColours::gray;
  const std::vector<uint8_t> original = make_jpeg({120, 120}, kind);
  int sound = 0;
  for (int trial = 0; trial < 400; ++trial) {
    SCOPED_TRACE(trial);
    std::vector<uint8_t> files[2];
    BaselineJpeg jpegs[2];
    std::vector<PlainBlock> expected[2];
    for (int f : {0, 1}) {
      files[f] = make_unusual(original, 1 + static_cast<int>(random() % 4), random);
      ASSERT_TRUE(parse_baseline(files[f], jpegs[f]));
      decode_plainly(files[f], jpegs[f], expected[f]);
      if (expected[f].size() < 60) continue;
      // Now the data end within the last byte of a block.
      const size_t bytes = expected[f][expected[f].size() - random() % 20 - 1].end / 8;
      files[f].erase(files[f].begin() + static_cast<ptrdiff_t>(jpegs[f].scan_begin + bytes),
                     files[f].end() - 2);
      expected[f].clear();
      ASSERT_TRUE(parse_baseline(files[f], jpegs[f]));
      decode_plainly(files[f], jpegs[f], expected[f]);
    }
    const size_t both = std::min(expected[0].size(), expected[1].size());
    const size_t count =
        std::min<size_t>(random() % 3 == 0 ? both + 1 : 1 + random() % (both + 1), 225);
    HuffmanCache tables(trial % 3 == 0 ? kAcBits : kMaxAcBits);
    ScanReader readers[2];
    RowBuffer buffers[2] = {{jpegs[0], static_cast<int>(count)},
                            {jpegs[1], static_cast<int>(count)}};
    for (int f : {0, 1}) {
      ASSERT_TRUE(readers[f].open(files[f], jpegs[f], tables) && readers[f].begin());
      buffers[f].attach(readers[f]);
    }
    ASSERT_EQ(ScanReader::store_both(readers[0], readers[1], 0, static_cast<int>(count)),
              count <= both)
        << count << " of " << both;
    if (count > both) continue;
    ++sound;
    for (int f : {0, 1}) {
      for (size_t b = 0; b < count; ++b) {
        const int16_t* block = buffers[f].row(0, 0) + coefficient_offset(b);
        for (int i = 0; i < kBlockSize; ++i) {
          ASSERT_EQ(block[i / 8 * 8 * kBlockGroup + i % 8], expected[f][b].coefficients[i])
              << "stream " << f << " block " << b;
        }
      }
      int32_t dc = 0;
      EXPECT_EQ(plain_place(files[f], jpegs[f], readers[f], dc), expected[f][count - 1].end);
      EXPECT_EQ(dc, expected[f][count - 1].dc);
    }
  }
  EXPECT_GT(sound, 100);
}

INSTANTIATE_TEST_SUITE_P(AllTargets, EntropyTwo,
                         ::testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& target) { return hwy::TargetName(target.param); });

}  // namespace
}  // namespace stoker
