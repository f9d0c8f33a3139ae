// Skipping far, in two places at once, on every instruction set: the places, the predictors and the
// verdicts are those of skipping MCU by MCU, which entropy_decoder_test.cc compares with the plain
// twin.
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

// Skips in parts of random sizes, most of them long, and compares what follows each with the twin's
// places. Adds the leaps that met to `met`.
void expect_same_places(const std::vector<uint8_t>& file, uint32_t seed, int& met) {
  BaselineJpeg jpeg;
  ASSERT_TRUE(parse_baseline(file, jpeg));
  HuffmanCache tables;
  ScanReader twin, reader;
  ASSERT_TRUE(twin.open(file, jpeg, tables) && twin.begin());
  reader.open(twin);
  ASSERT_TRUE(reader.begin());
  std::mt19937 random(seed);
  const int all = jpeg.mcus_across * jpeg.mcus_down;
  for (int done = 0; done < all;) {
    const int part = 1 + static_cast<int>(random() % static_cast<uint32_t>(all - done));
    bool is_sound = true;
    for (int m = 0; m < part && is_sound; ++m) is_sound = twin.skip(1);
    ASSERT_EQ(reader.skip(part), is_sound) << done << " and " << part << " of " << all;
    if (!is_sound) break;
    done += part;
    ScanPoint expected, found;
    if (done == all || !twin.here(expected)) continue;
    ASSERT_TRUE(reader.here(found)) << done;
    ASSERT_EQ(found.byte, expected.byte) << done;
    ASSERT_EQ(found.bit, expected.bit) << done;
    for (int c = 0; c < 3; ++c) ASSERT_EQ(found.dc[c], expected.dc[c]) << done << "," << c;
  }
  EXPECT_EQ(twin.places_met(), 0);
  met += reader.places_met();
}

// Flips bits behind the headers, and cuts some of the data off.
std::vector<uint8_t> damaged_far(std::vector<uint8_t> file, std::mt19937& random) {
  BaselineJpeg jpeg;
  if (!parse_baseline(file, jpeg)) return file;
  const size_t bytes = file.size() - jpeg.scan_begin - 2;
  if (random() % 3 == 0) {
    file.erase(file.end() - 2 - static_cast<ptrdiff_t>(random() % bytes), file.end() - 2);
    return file;
  }
  for (uint32_t flips = 1 + random() % 3; flips > 0; --flips) {
    file[jpeg.scan_begin + random() % bytes] ^= static_cast<uint8_t>(1u << random() % 8);
  }
  return file;
}

using EntropyFar = EveryTarget;

TEST_P(EntropyFar, SkipsAsMcuByMcu) {
  constexpr int kSamplings[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {4, 2}};
  int met = 0;
  uint32_t seed = 0;
  for (const auto& sampling : kSamplings) {
    for (const int quality : {30, 90, 100}) {
      JpegKind kind{.quality = quality, .sampling_x = sampling[0], .sampling_y = sampling[1]};
      SCOPED_TRACE(describe(kind));
      const std::vector<uint8_t> file = make_jpeg({501, 380}, kind, ++seed);
      expect_same_places(file, seed, met);
      expect_same_places(recode_jpeg(file, {0, true}), seed, met);
      expect_same_places(recode_jpeg(file, {400, false}), seed, met);
      if (HasFatalFailure()) return;
    }
  }
  JpegKind kind{.colours = JpegColours::gray};
  expect_same_places(make_jpeg({700, 500}, kind), 1, met);
  EXPECT_GT(met, 50);
}

TEST_P(EntropyFar, SkipsAsMcuByMcuInRealFiles) {
  int met = 0;
  for_each_real_file([&](const std::vector<uint8_t>& file, uint32_t seed) {
    expect_same_places(file, seed, met);
  });
  if (!IsSkipped()) {
    EXPECT_GT(met, 60);
  }
}

// More marks than the second stream has, and many leaps after each other.
TEST_P(EntropyFar, SkipsAsMcuByMcuInLargePictures) {
  JpegKind kind;
  kind.sampling_x = kind.sampling_y = 2;
  const std::vector<uint8_t> file = make_jpeg({1900, 1500}, kind);
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    int met = 0;
    expect_same_places(file, seed, met);
    EXPECT_GT(met, 3);
  }
}

TEST_P(EntropyFar, FindsTheSameDamage) {
  JpegKind kind;
  int met = 0;
  std::mt19937 random(5);
  for (int sampling = 1; sampling <= 2; ++sampling) {
    kind.sampling_x = kind.sampling_y = sampling;
    for (const bool has_own_tables : {false, true}) {
      const std::vector<uint8_t> file =
          recode_jpeg(make_jpeg({420, 400}, kind), {0, has_own_tables});
      for (uint32_t trial = 0; trial < 40; ++trial) {
        SCOPED_TRACE(trial);
        expect_same_places(damaged_far(file, random), trial, met);
        if (HasFatalFailure()) return;
      }
    }
  }
  EXPECT_GT(met, 40);
}

// A grey file of zeros, whose blocks are the codes 0 and 00: a stream that does not begin between
// two blocks never will be there.
TEST_P(EntropyFar, GoesOnAloneWhereNothingIsMet) {
  JpegKind kind{.colours = JpegColours::gray};
  std::vector<uint8_t> file = make_jpeg({320, 320}, kind);
  BaselineJpeg jpeg;
  ASSERT_TRUE(parse_baseline(file, jpeg));
  const auto set_first_code = [&](const HuffmanSpec& spec, int bits) {
    uint8_t* const counts = file.data() + (spec.counts - file.data());
    std::fill_n(counts, 16, uint8_t{0});
    counts[bits - 1] = 1;
    counts[15] = static_cast<uint8_t>(spec.value_count - 1);
    file[static_cast<size_t>(spec.values - file.data())] = 0;
  };
  set_first_code(jpeg.dc[jpeg.components[0].dc], 1);
  set_first_code(jpeg.ac[jpeg.components[0].ac], 2);
  file.resize(jpeg.scan_begin);
  file.resize(file.size() + 40 * 40 * 3 / 8, 0);
  file.insert(file.end(), {0xFF, 0xD9});
  HuffmanCache tables;
  ScanReader reader;
  constexpr int kMin = 400, kMax = 500;
  for (int blocks = kMin; blocks < kMax; ++blocks) {
    ASSERT_TRUE(reader.open(file, jpeg, tables) && reader.begin() && reader.skip(blocks));
    ScanPoint place;
    ASSERT_TRUE(reader.here(place));
    ASSERT_EQ(8 * place.byte + place.bit, static_cast<uint32_t>(3 * blocks));
  }
  EXPECT_GT(reader.places_met(), 10);
  EXPECT_LT(reader.places_met(), 60);
}

// AddressSanitizer sees where the second stream stops, which begins close to the end of the data.
TEST_P(EntropyFar, StopsWithinItsPadding) {
  for (const int blocks : {kSkipChunk + 225, kSkipChunk + 230, 2 * kSkipChunk + 200}) {
    const std::vector<uint8_t> file = make_longest(blocks);
    BaselineJpeg jpeg;
    ASSERT_TRUE(parse_baseline(file, jpeg));
    HuffmanCache tables;
    ScanReader reader;
    ASSERT_TRUE(reader.open(file, jpeg, tables) && reader.begin());
    EXPECT_FALSE(reader.skip(jpeg.mcus_across * jpeg.mcus_down));
  }
}

INSTANTIATE_TEST_SUITE_P(AllTargets, EntropyFar, every_target(), target_name);

}  // namespace
}  // namespace stoker
