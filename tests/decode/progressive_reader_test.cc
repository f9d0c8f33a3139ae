// ProgressiveReader against jpeg_read_coefficients, on every instruction set: all samplings,
// scripts of scans, restart intervals and crops; and which files it leaves to libjpeg.
#include "decode/jpeg/progressive_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "decode/image_decoder.h"
#include "tests/decode/every_target.h"
#include "tests/decode/jpeg_maker.h"
#include "tests/decode/progressive_scripts.h"

namespace stoker {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr int64_t kLimit = int64_t{64} << 20;
constexpr int kReaderSamplings[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {4, 2}, {1, 4}};

Box any_mcus(const JpegFrame& jpeg, std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  Box box;
  box.x = below(jpeg.mcus_across);
  box.y = below(jpeg.mcus_down);
  box.width = 1 + below(jpeg.mcus_across - box.x);
  box.height = 1 + below(jpeg.mcus_down - box.y);
  return box;
}

// Compares the kept blocks, and the masks of all blocks: where AC coefficients are not zero.
void expect_coefficients(ProgressiveReader& reader, const Coefficients& expected) {
  CropCoefficients& ours = reader.coefficients();
  for (int c = 0; c < reader.jpeg().component_count; ++c) {
    const Size blocks = ours.blocks(c);
    const Box& kept = ours.kept(c);
    ASSERT_EQ(expected[c].size(), static_cast<size_t>(blocks.height));
    for (int y = 0; y < blocks.height; ++y) {
      for (int x = 0; x < blocks.width; ++x) {
        const std::vector<int16_t>& block = expected[c][y][x];
        const bool is_kept =
            x >= kept.x && x < kept.x + kept.width && y >= kept.y && y < kept.y + kept.height;
        const int16_t* from =
            is_kept ? ours.row(c, y - kept.y) + coefficient_offset(static_cast<size_t>(x - kept.x))
                    : nullptr;
        uint64_t mask = 0;
        for (int k = 0; k < kBlockSize; ++k) {
          const int i = kZigzag[k];
          if (k > 0 && block[i] != 0) mask |= uint64_t{1} << (63 - k);
          if (is_kept) {
            ASSERT_EQ(from[i / 8 * 8 * kBlockGroup + i % 8], block[i])
                << "component " << c << " block " << x << "," << y << " coefficient " << k;
          }
        }
        ASSERT_EQ(ours.nonzero(c)[y * blocks.width + x], mask)
            << "component " << c << " block " << x << "," << y;
      }
    }
  }
}

class ProgressiveReaderTest : public EveryTarget {
 protected:
  void expect_same_coefficients(const Bytes& file) {
    const Coefficients expected = read_coefficients(file);
    ASSERT_TRUE(reader_.open(file));
    ASSERT_TRUE(reader_.read(any_mcus(reader_.jpeg(), random_), kLimit));
    expect_coefficients(reader_, expected);
  }

  ProgressiveReader reader_;
  std::mt19937 random_{1};
};

INSTANTIATE_TEST_SUITE_P(AllTargets, ProgressiveReaderTest, every_target(), target_name);

TEST_P(ProgressiveReaderTest, GivesLibjpegsCoefficientsForEveryScript) {
  uint32_t seed = 0;
  for (const auto& sampling : kReaderSamplings) {
    for (const int quality : {15, 75, 95, 100}) {
      JpegKind kind{.quality = quality, .sampling_x = sampling[0], .sampling_y = sampling[1]};
      const Size size{40 + static_cast<int>(seed * 37 % 150),
                      24 + static_cast<int>(seed * 53 % 90)};
      const Bytes file = make_jpeg(size, kind, ++seed);
      std::vector<ScanScript> scripts = usual_scripts(3);
      scripts.push_back(random_script(3, random_));
      for (const ScanScript& script : scripts) {
        const int interval = static_cast<int>(random_() % 3 == 0 ? 1 + random_() % 20 : 0);
        SCOPED_TRACE(describe(kind) + " " + script.name + " restart " + std::to_string(interval));
        expect_same_coefficients(recode_jpeg(file, {interval, true, script.scans}));
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(ProgressiveReaderTest, GivesLibjpegsCoefficientsForRandomScripts) {
  for (int trial = 0; trial < 150; ++trial) {
    JpegKind kind;
    const bool is_grey = trial % 4 == 0;
    if (is_grey) kind.colours = JpegColours::gray;
    kind.sampling_x = 1 + trial % 2;
    kind.sampling_y = 1 + trial / 2 % 2;
    kind.quality = 30 + trial % 71;
    const Size size{1 + static_cast<int>(random_() % 70), 1 + static_cast<int>(random_() % 70)};
    const ScanScript script = random_script(is_grey ? 1 : 3, random_);
    const int interval = trial % 3 == 0 ? 1 + trial % 7 : 0;
    SCOPED_TRACE(describe(kind) + " trial " + std::to_string(trial));
    const Bytes file = make_jpeg(size, kind, static_cast<uint32_t>(trial));
    expect_same_coefficients(recode_jpeg(file, {interval, true, script.scans}));
    if (HasFatalFailure()) return;
  }
}

TEST_P(ProgressiveReaderTest, GivesLibjpegsCoefficientsOfGreyFiles) {
  JpegKind kind{.colours = JpegColours::gray};
  for (uint32_t seed = 1; seed <= 6; ++seed) {
    kind.quality = 20 + 13 * static_cast<int>(seed);
    kind.sampling_x = 1 + static_cast<int>(seed % 2);
    const Bytes file = make_jpeg({30 + 9 * static_cast<int>(seed), 41}, kind, seed);
    for (const ScanScript& script : usual_scripts(1)) {
      expect_same_coefficients(recode_jpeg(file, {5, true, script.scans}));
    }
    if (HasFatalFailure()) return;
  }
}

TEST_P(ProgressiveReaderTest, GivesLibjpegsCoefficientsOfRealFiles) {
  const char* data = std::getenv("STOKER_DATA");
  if (data == nullptr) GTEST_SKIP() << "STOKER_DATA is not set";
  int files = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::string(data) + "/imagenet-samples")) {
    if (!entry.is_regular_file() || files == 40) continue;
    const Bytes file = read_file(entry.path());
    BaselineJpeg jpeg;
    if (!parse_baseline(file, jpeg)) continue;
    SCOPED_TRACE(entry.path());
    ++files;
    expect_same_coefficients(recode_jpeg(file, {0, true, libjpegs_scans(jpeg.component_count)}));
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(files, 0) << data << " holds no baseline JPEG";
}

class ProgressiveFiles : public ::testing::Test {
 protected:
  bool takes(const Bytes& file) {
    return reader_.open(file) &&
           reader_.read({0, 0, reader_.jpeg().mcus_across, reader_.jpeg().mcus_down}, kLimit);
  }
  Bytes recoded(const std::vector<ScanOfBits>& scans) {
    return recode_jpeg(plain_, {0, true, scans});
  }
  // Returns the file with `bytes` before the tables of the second scan, or before its header.
  Bytes with_bytes_between_scans(const Bytes& bytes, int restart_interval = 0,
                                 uint8_t before = kTables) {
    Bytes file = recode_jpeg(plain_, {restart_interval, true, libjpegs_scans(3)});
    const auto find = [&](Bytes::iterator from, uint8_t code) {
      const uint8_t marker[] = {0xFF, code};
      return std::search(from, file.end(), std::begin(marker), std::end(marker));
    };
    file.insert(find(find(file.begin(), kScan) + 1, before), bytes.begin(), bytes.end());
    return file;
  }

  static constexpr uint8_t kTables = 0xC4, kScan = 0xDA;

  const Bytes plain_ = make_jpeg({61, 47}, {.sampling_x = 2, .sampling_y = 2});
  ProgressiveReader reader_;
};

TEST_F(ProgressiveFiles, OnlyCompleteOnesAreTaken) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 30; ++trial) {
    std::vector<ScanOfBits> scans = random_script(3, random).scans;
    EXPECT_TRUE(takes(recoded(scans)));
    scans.pop_back();
    EXPECT_FALSE(takes(recoded(scans)));
  }
}

// High frequencies may be left out: libjpeg-turbo guesses the first nine at most.
TEST_F(ProgressiveFiles, LibjpegDecodesFilesWithoutHighFrequencies) {
  const auto with_last = [&](int last, int low) {
    return recoded(
        {{{0, 1, 2}, 0, 0, 0, 0}, {{0}, 1, last, 0, low}, {{1}, 1, 63, 0, 0}, {{2}, 1, 63, 0, 0}});
  };
  ImageDecoder decoder;
  const Box box{20, 9, 30, 31};
  Pixels out({30, 31});
  const auto decode = [&](const Bytes& file) {
    EXPECT_FALSE(takes(file));
    return decoder.decode(file, plain_crop(box), out.view()).code;
  };
  const Bytes file = with_last(9, 0);
  ASSERT_EQ(decode(file), DecodeCode::ok);
  const Pixels whole = decode_whole_jpeg(file);
  for (int y = 0; y < box.height; ++y) {
    EXPECT_TRUE(
        std::equal(out.pixel(0, y), out.pixel(0, y) + 3 * box.width, whole.pixel(box.x, box.y + y)))
        << y;
  }
  EXPECT_EQ(decode(with_last(8, 0)), DecodeCode::truncated);
  EXPECT_EQ(decode(with_last(63, 1)), DecodeCode::truncated);
}

// libjpeg's encoder writes no such files, so scans are copied within a file.
TEST_F(ProgressiveFiles, ScansOutOfOrderAreLeftToLibjpeg) {
  const Bytes file = recoded({{{0, 1, 2}, 0, 0, 0, 0},
                              {{0}, 1, 63, 0, 1},
                              {{1}, 1, 63, 0, 0},
                              {{2}, 1, 63, 0, 0},
                              {{0}, 1, 63, 1, 0}});
  // Where each scan's tables and header begin, and the end marker.
  std::vector<size_t> begins;
  size_t after = 0;
  for (size_t at = 2; at + 1 < file.size();) {
    const uint8_t marker = file[at + 1];
    if (marker == 0xC4 && (begins.empty() || after != 0)) begins.push_back(at);
    after = marker == 0xDA ? at : 0;
    if (marker == 0xD9) begins.push_back(at);
    at += marker == 0xD9 ? 2 : size_t{2} + (file[at + 2] << 8 | file[at + 3]);
    while (after != 0 && at + 1 < file.size() && (file[at] != 0xFF || file[at + 1] == 0)) ++at;
  }
  ASSERT_EQ(begins.size(), 6u);
  const auto with = [&](std::vector<int> order) {
    Bytes out(file.begin(), file.begin() + static_cast<ptrdiff_t>(begins[0]));
    for (const int scan : order) {
      out.insert(out.end(), file.begin() + static_cast<ptrdiff_t>(begins[scan]),
                 file.begin() + static_cast<ptrdiff_t>(begins[scan + 1]));
    }
    out.insert(out.end(), {0xFF, 0xD9});
    return out;
  };
  EXPECT_TRUE(takes(with({0, 1, 2, 3, 4})));
  EXPECT_TRUE(takes(with({0, 3, 1, 4, 2})));
  EXPECT_FALSE(takes(with({0, 4, 1, 2, 3})));     // bits before those above them
  EXPECT_FALSE(takes(with({1, 0, 2, 3, 4})));     // AC before DC
  EXPECT_FALSE(takes(with({0, 1, 2, 2, 3, 4})));  // the same bits twice
  EXPECT_FALSE(takes(with({0, 0, 1, 2, 3, 4})));
  EXPECT_FALSE(takes(with({0, 1, 2, 3})));
}

TEST_F(ProgressiveFiles, MoreScansThanTheLimitAreLeftToLibjpeg) {
  // Two scans for the DC coefficients and for each other one, and `more` for the first of these.
  const auto takes_with = [&](int more) {
    std::vector<ScanOfBits> scans;
    for (int k = 0; k < 64; ++k) {
      const int low = 1 + (k == 1 ? more : 0);
      scans.push_back({{0}, k, k, 0, low});
      for (int bit = low; bit > 0; --bit) scans.push_back({{0}, k, k, bit, bit - 1});
    }
    EXPECT_EQ(scans.size(), size_t{128} + more);
    const Bytes grey = make_jpeg({24, 16}, {.colours = JpegColours::gray});
    return takes(recode_jpeg(grey, {0, true, scans}));
  };
  ASSERT_EQ(ProgressiveHeaders::kMaxScans, 128);
  EXPECT_TRUE(takes_with(0));
  EXPECT_FALSE(takes_with(1));
}

TEST_F(ProgressiveFiles, WhatComesBetweenScans) {
  EXPECT_TRUE(takes(with_bytes_between_scans({})));
  EXPECT_TRUE(takes(with_bytes_between_scans({0xFF})));                   // fill
  EXPECT_TRUE(takes(with_bytes_between_scans({0xFF, 0xFE, 0, 3, 'a'})));  // a comment
  EXPECT_FALSE(takes(with_bytes_between_scans({0})));                     // left over
  EXPECT_FALSE(takes(with_bytes_between_scans({0xFF, 0, 0xFF})));
  EXPECT_FALSE(takes(with_bytes_between_scans({0xFF, 0xD0})));  // a restart marker
  EXPECT_TRUE(takes(with_bytes_between_scans({0xFF, 0xFF}, 0, kScan)));
  EXPECT_FALSE(takes(with_bytes_between_scans({0}, 0, kScan)));
  // The first restart marker of a scan that is too short for one, with data behind it.
  constexpr int kLongInterval = 1000;
  EXPECT_TRUE(takes(with_bytes_between_scans({}, kLongInterval)));
  EXPECT_FALSE(takes(with_bytes_between_scans({0xFF, 0xD0, 0x55}, kLongInterval)));
  EXPECT_FALSE(takes(with_bytes_between_scans({0xFF, 0xDC, 0, 4, 0, 47})));
  EXPECT_FALSE(takes(with_bytes_between_scans({0xFF, 0xD9})));
  Bytes steps = {0xFF, 0xDB, 0, 67, 0};
  steps.resize(steps.size() + 64, 1);
  EXPECT_FALSE(takes(with_bytes_between_scans(steps)));
}

// A value that does not fit into 16 bits: libjpeg loses its upper bits, and may take it for zero. A
// value of two bits where a coefficient gets one: libjpeg warns.
TEST_F(ProgressiveFiles, SymbolsThatLibjpegMayReadOtherwiseAreLeftToIt) {
  const Bytes grey = make_jpeg({8, 8}, {.colours = JpegColours::gray, .quality = 5});
  const Bytes file = recode_jpeg(
      grey,
      {0, true, {{{0}, 0, 0, 0, 0}, {{0}, 1, 62, 0, 0}, {{0}, 63, 63, 0, 1}, {{0}, 63, 63, 1, 0}}});
  ASSERT_TRUE(takes(file));
  // The last two scans have one symbol each, the end of a block, with the code 0.
  std::vector<size_t> symbols, data;
  for (size_t at = 0; at + 1 < file.size(); ++at) {
    if (file[at] != 0xFF) continue;
    if (file[at + 1] == kTables) symbols.push_back(at + 21);
    if (file[at + 1] == kScan) data.push_back(at + 10);
  }
  ASSERT_EQ(symbols.size(), 4u);
  for (const size_t scan : {2, 3}) {
    ASSERT_EQ(file[symbols[scan]], 0x00);
    ASSERT_EQ(file[data[scan]], 0x7F);
  }
  const auto with = [&](size_t scan, uint8_t symbol, const Bytes& bits) {
    Bytes changed = file;
    changed[symbols[scan]] = symbol;
    const auto at = changed.erase(changed.begin() + static_cast<ptrdiff_t>(data[scan]));
    changed.insert(at, bits.begin(), bits.end());
    return changed;
  };
  EXPECT_TRUE(takes(with(2, 0x0E, {0x40, 0x01})));   // 8192 * 2
  EXPECT_FALSE(takes(with(2, 0x0F, {0x40, 0x00})));  // 16384 * 2
  EXPECT_TRUE(takes(with(3, 0x01, {0x7F})));
  EXPECT_FALSE(takes(with(3, 0x02, {0x7F})));
}

// An end-of-blocks code that promises more blocks than come before the next restart marker: libjpeg
// forgets the rest.
TEST_F(ProgressiveFiles, EndsOfBlocksStopAtRestartMarkers) {
  const Bytes grey = make_jpeg({32, 8}, {.colours = JpegColours::gray, .quality = 5});
  const std::vector<ScanOfBits> scans = {
      {{0}, 0, 0, 0, 0}, {{0}, 1, 62, 0, 0}, {{0}, 63, 63, 0, 0}};
  Bytes file = recode_jpeg(grey, {1, true, scans});
  ASSERT_TRUE(takes(file));
  // The only symbol of the last scan ends one block; now it ends eight and more.
  constexpr uint8_t kMarker[] = {0xFF, kTables};
  uint8_t& symbol =
      *(std::find_end(file.begin(), file.end(), std::begin(kMarker), std::end(kMarker)) + 21);
  ASSERT_EQ(symbol, 0x00);
  symbol = 0x30;
  EXPECT_TRUE(takes(file));
  expect_coefficients(reader_, read_coefficients(file));
}

TEST_F(ProgressiveFiles, PromisesThatTheFileCannotHoldAreRefused) {
  const Bytes file = make_jpeg({64, 48}, {.progressive = true});
  EXPECT_TRUE(reader_.open(file));
  EXPECT_FALSE(reader_.open(with_size(file, {13'000, 13'000})));
}

TEST_F(ProgressiveFiles, NeedNoMoreThanTheirLimit) {
  const Bytes file = make_jpeg({640, 400}, {.progressive = true});
  ASSERT_TRUE(reader_.open(file));
  const Box whole{0, 0, 80, 50};
  // 2 bytes per coefficient and 8 per block, of three components.
  const int64_t need = int64_t{3} * 640 * 400 * 2 + int64_t{3} * 80 * 50 * 8;
  EXPECT_FALSE(reader_.read(whole, need - 1));
  EXPECT_LT(reader_.coefficients().scratch_bytes(), 1);
  EXPECT_TRUE(reader_.open(file));
  EXPECT_TRUE(reader_.read(whole, need));
  EXPECT_EQ(reader_.coefficients().scratch_bytes(), need);
  // A small crop needs the masks of all blocks.
  reader_.coefficients().release();
  EXPECT_TRUE(reader_.open(file));
  EXPECT_TRUE(reader_.read({8, 8, 4, 4}, need));
  EXPECT_EQ(reader_.coefficients().scratch_bytes(), 3 * 4 * 4 * 128 + 3 * 80 * 50 * 8);
}

}  // namespace
}  // namespace stoker
