// The entropy decoder against jpeg_read_coefficients and a plain twin, on every instruction set:
// all samplings, qualities, restart intervals and kinds of tables, and cases that real files rarely
// have. It stores blocks, skips them (entropy_far_test.cc goes far), and stores two runs at once.
#include "decode/jpeg/entropy_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "decode/jpeg/scan_reader.h"
#include "tests/decode/entropy_rows.h"
#include "tests/decode/entropy_twin.h"
#include "tests/decode/every_target.h"
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

using EntropyDecoder = EveryTarget;

TEST_P(EntropyDecoder, GivesLibjpegsCoefficients) { for_each_coding(expect_same_coefficients); }

TEST_P(EntropyDecoder, GivesLibjpegsCoefficientsOfGreyFiles) {
  JpegKind kind{.colours = JpegColours::gray};
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
  ASSERT_TRUE(reader.begin());
  EXPECT_FALSE(reader.skip(jpeg.mcus_across));
}

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

TEST_P(EntropyDecoder, SkipsWhatThePlainTwinAccepts) {
  for_each_unusual([](const auto& file, const auto& jpeg, const auto& expected, auto& random) {
    expect_same_skips(file, jpeg, expected, random);
    if (!HasFatalFailure()) expect_same_verdicts(file, jpeg, expected);
  });
}

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

TEST_P(EntropyDecoder, GivesLibjpegsCoefficientsOfTwoRows) {
  for_each_coding(expect_same_pairs_of_rows);
}

TEST_P(EntropyDecoder, GivesLibjpegsCoefficientsOfTwoRowsOfNoise) {
  const std::vector<uint8_t> file = make_noise();
  for (uint32_t seed = 0; seed < 20; ++seed) expect_same_pairs_of_rows(file, seed);
}

TEST_P(EntropyDecoder, GivesLibjpegsCoefficientsOfTwoRowsOfRealFiles) {
  for_each_real_file(expect_same_pairs_of_rows);
}

// Two streams at once: sound together only if both are.
TEST_P(EntropyDecoder, StoresTwoStreamsAsEachAlone) {
  std::mt19937 random(11);
  JpegKind kind{.colours = JpegColours::gray};
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

INSTANTIATE_TEST_SUITE_P(AllTargets, EntropyDecoder, every_target(), target_name);

}  // namespace
}  // namespace stoker
