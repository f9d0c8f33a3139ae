// The entropy decoder against jpeg_read_coefficients, on every instruction set: all samplings,
// qualities, restart intervals and kinds of tables, and cases that real files rarely have.
#include "decode/jpeg/entropy_decoder.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <random>

#include "decode/jpeg/scan_reader.h"
#include "tests/decode/entropy_rows.h"
#include "tests/decode/entropy_twin.h"
#include "tests/decode/jpeg_maker.h"
#include "tests/decode/jpeg_recoder.h"

namespace stoker {
namespace {

// Decodes the file, storing a window of MCUs and skipping the others.
void expect_same_coefficients(const std::vector<uint8_t>& file, uint32_t seed) {
  const Coefficients expected = read_coefficients(file);
  BaselineJpeg jpeg;
  ASSERT_TRUE(parse_baseline(file, jpeg));
  std::mt19937 random(seed);
  const int left = static_cast<int>(random() % jpeg.mcus_across);
  const int width = 1 + static_cast<int>(random() % (jpeg.mcus_across - left));
  const int top = static_cast<int>(random() % jpeg.mcus_down);
  HuffmanCache tables(seed % 2 == 0 ? kAcBits : kMaxAcBits);
  ScanReader reader;
  ASSERT_TRUE(reader.open(file, jpeg, tables) && reader.begin());
  RowBuffer buffer(jpeg, width);
  for (int row = 0; row < jpeg.mcus_down; ++row) {
    if (row < top) {
      ASSERT_TRUE(reader.skip(jpeg.mcus_across)) << row;
      continue;
    }
    buffer.attach(reader);
    ASSERT_TRUE(reader.skip(left) && reader.store(0, width) &&
                reader.skip(jpeg.mcus_across - left - width))
        << row;
    expect_row(jpeg, buffer, expected, row, left, width);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

// Stores the blocks one by one.
void expect_same_blocks(const std::vector<uint8_t>& file, const BaselineJpeg& jpeg,
                        const std::vector<PlainBlock>& expected, std::mt19937& random) {
  HuffmanCache tables(random() % 2 == 0 ? kAcBits : kMaxAcBits);
  ScanReader reader;
  ASSERT_TRUE(reader.open(file, jpeg, tables) && reader.begin());
  RowBuffer buffer(jpeg, 1);
  for (size_t b = 0; b < 225; ++b) {
    buffer.attach(reader);
    const bool sound = reader.store(0, 1);
    ASSERT_EQ(sound, b < expected.size()) << "block " << b;
    if (!sound) return;
    for (int i = 0; i < kBlockSize; ++i) {
      ASSERT_EQ(buffer.row(0, 0)[i / 8 * 8 * kBlockGroup + i % 8], expected[b].coefficients[i])
          << "block " << b;
    }
  }
}

class EntropyDecoder : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

TEST_P(EntropyDecoder, GivesLibjpegsCoefficients) { for_each_coding(expect_same_coefficients); }

TEST_P(EntropyDecoder, GivesLibjpegsCoefficientsOfGreyFiles) {
  JpegKind kind;
  kind.colours = JpegColours::gray;
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    kind.quality = 20 + 7 * static_cast<int>(seed);
    const std::vector<uint8_t> file = make_jpeg({30 + 9 * static_cast<int>(seed), 41}, kind, seed);
    expect_same_coefficients(file, seed);
    expect_same_coefficients(recode_jpeg(file, {5, true}), seed);
    if (HasFatalFailure()) return;
  }
}

TEST_P(EntropyDecoder, GivesLibjpegsCoefficientsOfNoise) {
  const std::vector<uint8_t> file = make_noise();
  expect_same_coefficients(file, 5);
  expect_same_coefficients(recode_jpeg(file, {7, true}), 6);
}

TEST_P(EntropyDecoder, GivesLibjpegsCoefficientsOfRealFiles) {
  for_each_real_file(expect_same_coefficients);
}

TEST_P(EntropyDecoder, StoresWhatThePlainTwinAccepts) { for_each_unusual(expect_same_blocks); }

// AddressSanitizer sees where the decoder stops.
TEST_P(EntropyDecoder, StopsWithinItsPadding) {
  const std::vector<uint8_t> file = make_longest();
  BaselineJpeg jpeg;
  ASSERT_TRUE(parse_baseline(file, jpeg));
  HuffmanCache tables;
  ScanReader reader;
  ASSERT_TRUE(reader.open(file, jpeg, tables) && reader.begin());
  RowBuffer buffer(jpeg, jpeg.mcus_across);
  buffer.attach(reader);
  EXPECT_FALSE(reader.store(0, jpeg.mcus_across));
}

INSTANTIATE_TEST_SUITE_P(AllTargets, EntropyDecoder,
                         ::testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& target) { return hwy::TargetName(target.param); });

}  // namespace
}  // namespace stoker
