// The seek index: the same bytes with and without it, for every kind of file that CropDecoder
// takes; an index of other bytes, or a damaged one, changes nothing.
#include "decode/jpeg/seek_index.h"

#include <gtest/gtest.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>
#include <random>

#include "decode/crop_decoder.h"
#include "tests/decode/jpeg_maker.h"
#include "tests/decode/jpeg_recoder.h"
#include "tests/decode/libjpeg_path.h"
#include "tests/decode/random_spec.h"

namespace stoker {
namespace {

constexpr int64_t kSeekMaxPixels = 1 << 24;
constexpr SeekStep kSteps[] = {SeekStep::row, SeekStep::eight};

using Bytes = std::vector<uint8_t>;

CropSpec seek_spec(Size image, std::mt19937& random) {
  CropSpec spec{random_box(image, random), {24, 24}, {0, 0, 24, 24}};
  spec.flip = random() % 2 == 0;
  return spec;
}

class SeekIndexTest : public ::testing::Test {
 protected:
  Bytes index_of(const Bytes& file, SeekStep step) {
    Bytes index;
    EXPECT_TRUE(builder_.build(file, step, index));
    return index;
  }

  // Returns what one crop leaves of a file that has no index yet.
  Bytes recorded_index(const Bytes& file, const CropSpec& spec) {
    CropDecoder recording(kSeekMaxPixels, PixelPolicy::fast);
    recording.record_places();
    EXPECT_TRUE(recording.decode(file, spec, indexed_.view()));
    const std::span<const uint8_t> index = recording.recorded_index();
    EXPECT_FALSE(index.empty());
    return {index.begin(), index.end()};
  }

  // Decodes with and without `index`. Returns true if the index was used.
  bool expect_same(const Bytes& file, const Bytes& index, const CropSpec& spec) {
    const bool plain = decoder_.decode(file, spec, plain_.view());
    const SeekUse before = decoder_.seek_use();
    const Bytes exact_size(index);  // so that ASan notices a read past its end
    const bool indexed = decoder_.decode(file, spec, indexed_.view(), exact_size);
    const SeekUse after = decoder_.seek_use();
    EXPECT_EQ(indexed, plain);
    if (plain && indexed) {
      EXPECT_EQ(indexed_.packed(), plain_.packed());
    }
    return after.used > before.used;
  }

  SeekIndexBuilder builder_;
  CropDecoder decoder_{kSeekMaxPixels, PixelPolicy::fast};
  Pixels plain_{{24, 24}}, indexed_{{24, 24}};
};

TEST_F(SeekIndexTest, GivesTheSamePixelsForEverySamplingAndRestartInterval) {
  std::mt19937 random(1);
  int crops = 0, used = 0;
  for (const auto& [x, y] : {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {4, 2}, {1, 4}}) {
    for (const int interval : {0, 1, 5, 8, 16, 1000}) {
      JpegKind kind{.quality = interval % 2 == 0 ? 90 : 60, .sampling_x = x, .sampling_y = y};
      const Size size{1 + static_cast<int>(random() % 300), 1 + static_cast<int>(random() % 200)};
      const Bytes file = recode_jpeg(make_jpeg(size, kind, random() % 1000), {interval, true});
      for (const SeekStep step : kSteps) {
        const Bytes index = index_of(file, step);
        for (int trial = 0; trial < 12; ++trial, ++crops) {
          SCOPED_TRACE(describe(kind) + " restart " + std::to_string(interval));
          used += expect_same(file, index, seek_spec(size, random));
        }
      }
    }
  }
  EXPECT_GT(used, crops * 3 / 4);  // the others show nearly all of the image
}

TEST_F(SeekIndexTest, GivesTheSamePixelsOfGreyFilesAndNoise) {
  std::mt19937 random(2);
  int used = 0;
  for (int i = 0; i < 12; ++i) {
    JpegKind kind;
    kind.quality = i % 2 == 0 ? 100 : 40;  // much stuffing, or little
    kind.restart_rows = i % 3;
    if (i % 4 < 2) kind.colours = JpegColours::gray;
    const Size size{200 + i, 90 - i};
    const Bytes file = make_jpeg(size, kind, static_cast<uint32_t>(i) + 1);
    for (const SeekStep step : kSteps) {
      const Bytes index = index_of(file, step);
      for (int trial = 0; trial < 20; ++trial) {
        used += expect_same(file, index, seek_spec(size, random));
      }
    }
  }
  EXPECT_GT(used, 360);  // of 480
}

// Each place of the index leads to the next one, with the same predictors.
TEST_F(SeekIndexTest, EveryPlaceLeadsToTheNext) {
  JpegKind kind{.quality = 95, .sampling_x = 2};
  const Bytes file = recode_jpeg(make_jpeg({333, 61}, kind), {11, false});
  BaselineJpeg jpeg;
  ASSERT_TRUE(parse_baseline(file, jpeg));
  const Bytes encoded = index_of(file, SeekStep::eight);
  SeekIndex index;
  ASSERT_TRUE(index.open(encoded) && index.is_of(FilePieces(file), jpeg));
  EXPECT_EQ(index.step(), 8);
  EXPECT_EQ(index.groups(), (jpeg.mcus_across + 7) / 8);
  HuffmanCache tables;
  ScanReader reader;
  ASSERT_TRUE(reader.open(file, jpeg, tables));
  for (int row = 0; row < jpeg.mcus_down; ++row) {
    for (int group = 0; group < index.groups(); ++group) {
      const int mcu = row * jpeg.mcus_across + 8 * group;
      const int count = std::min(8, jpeg.mcus_across - 8 * group);
      ScanPoint from, to;
      ASSERT_TRUE(index.find(row, group, from));
      if (!index.find(row, group + 1, to)) continue;  // the last
      ASSERT_TRUE(reader.enter(from, mcu, to.byte) && reader.skip(count)) << row << "," << group;
      if ((mcu + count) % 11 == 0) continue;  // the next segment was not entered
      ScanPoint here;
      ASSERT_TRUE(reader.here(here));
      EXPECT_EQ(here.byte, to.byte) << row << "," << group;
      EXPECT_EQ(here.bit, to.bit);
      EXPECT_TRUE(std::equal(to.dc, to.dc + 3, here.dc)) << row << "," << group;
    }
  }
  ScanPoint none;
  EXPECT_FALSE(index.find(jpeg.mcus_down, 0, none));
  EXPECT_FALSE(index.find(jpeg.mcus_down - 1, index.groups(), none));
}

TEST_F(SeekIndexTest, IsRefusedWhenDamaged) {
  std::mt19937 random(3);
  const Size size{100, 80};
  const Bytes file = make_jpeg(size, {});
  for (const SeekStep step : kSteps) {
    const Bytes index = index_of(file, step);
    for (size_t bit = 0; bit < 8 * index.size(); ++bit) {
      Bytes bad = index;
      bad[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
      EXPECT_FALSE(expect_same(file, bad, seek_spec(size, random))) << bit;
    }
    for (size_t length = 0; length < index.size(); ++length) {
      const Bytes cut(index.begin(), index.begin() + static_cast<ptrdiff_t>(length));
      EXPECT_FALSE(expect_same(file, cut, seek_spec(size, random))) << length;
    }
    Bytes longer = index;
    longer.push_back(0);
    EXPECT_FALSE(expect_same(file, longer, seek_spec(size, random)));
  }
}

TEST_F(SeekIndexTest, IsRefusedForOtherBytes) {
  std::mt19937 random(4);
  const Size size{100, 80};
  const Bytes file = make_jpeg(size, {}, 1);
  const Bytes index = index_of(file, SeekStep::eight);
  EXPECT_FALSE(expect_same(make_jpeg(size, {}, 2), index, seek_spec(size, random)));
  for (size_t at = 0; at < file.size(); at += 1 + random() % 7) {
    Bytes changed = file;
    changed[at] ^= static_cast<uint8_t>(1u << random() % 8);
    EXPECT_FALSE(expect_same(changed, index, seek_spec(size, random))) << at;
  }
}

// The index must not hide damage above the crop.
TEST_F(SeekIndexTest, DamageAboveTheCropIsSeen) {
  const Size size{96, 96};
  JpegKind kind{.restart_rows = 1};
  const Bytes file = make_jpeg(size, kind);
  const Bytes index = index_of(file, SeekStep::row);
  const CropSpec spec{{8, 80, 40, 16}, {24, 24}, {0, 0, 24, 24}};
  ASSERT_TRUE(expect_same(file, index, spec));
  size_t marker = 2;
  while (file[marker] != 0xFF || file[marker + 1] != 0xD0) ++marker;
  Bytes bad = file;
  bad.erase(bad.begin() + static_cast<ptrdiff_t>(marker) + 2,
            bad.begin() + static_cast<ptrdiff_t>(marker) + 42);
  ASSERT_FALSE(decoder_.decode(bad, spec, plain_.view()));
  EXPECT_FALSE(decoder_.decode(bad, spec, plain_.view(), index));
}

// Even with a valid seal, an index can cause reads only inside the file.
TEST_F(SeekIndexTest, AForgedIndexReadsNothingOutside) {
  std::mt19937 random(5);
  const Size size{180, 160};
  JpegKind kind{.quality = 97};
  const Bytes files[] = {make_jpeg(size, kind, 1),
                         recode_jpeg(make_jpeg(size, kind, 1), {5, false})};
  const CropSpec upper{{0, 0, 180, 100}, {24, 24}, {0, 0, 24, 24}};
  for (int trial = 0; trial < 2000; ++trial) {
    const Bytes& file = files[trial % 2];
    Bytes index =
        trial % 3 == 0 ? recorded_index(file, upper) : index_of(file, kSteps[trial / 2 % 2]);
    const size_t sealed = index.size() - 8;
    for (int i = 0; i < 3; ++i) {
      // Not always in the header: such an index is soon refused.
      const size_t from = trial % 5 == 0 ? 0 : 6;
      index[from + random() % (sealed - from)] = static_cast<uint8_t>(random());
    }
    const uint64_t seal = XXH3_64bits(index.data(), sealed);
    std::memcpy(index.data() + sealed, &seal, sizeof seal);
    decoder_.decode(file, seek_spec(size, random), indexed_.view(), index);
  }
  EXPECT_GT(decoder_.seek_use().used, 0);
  EXPECT_GT(decoder_.seek_use().refused, 0);
}

// The crops of one file, each with the index that the crops before it left.
TEST_F(SeekIndexTest, WhatOneCropPassesHelpsTheNext) {
  std::mt19937 random(7);
  int used = 0, whole = 0, longer = 0;
  for (int i = 0; i < 60; ++i) {
    JpegKind kind{.quality = 96, .sampling_x = 1 + i % 2, .sampling_y = 1 + i / 2 % 2};
    if (i % 5 == 0) kind.colours = JpegColours::gray;
    const Size size{230 + i, 220 - i};
    const int intervals[] = {0, 0, 1, 7, 40};
    const Bytes file =
        recode_jpeg(make_jpeg(size, kind, static_cast<uint32_t>(i) + 1), {intervals[i % 5], true});
    const Bytes built = index_of(file, SeekStep::row);
    SCOPED_TRACE(describe(kind) + " restart " + std::to_string(intervals[i % 5]));
    CropDecoder recording{kSeekMaxPixels, PixelPolicy::fast};
    recording.record_places();
    Bytes index;
    for (int trial = 0; trial < 12; ++trial) {
      const CropSpec spec = seek_spec(size, random);
      used += expect_same(file, index, spec);
      ASSERT_TRUE(recording.decode(file, spec, indexed_.view(), Bytes(index)));
      ASSERT_TRUE(decoder_.decode(file, spec, plain_.view()));
      EXPECT_EQ(indexed_.packed(), plain_.packed());
      const std::span<const uint8_t> recorded = recording.recorded_index();
      if (recorded.empty()) continue;
      EXPECT_GT(claimed_seek_rows(recorded), claimed_seek_rows(index));
      longer += !index.empty();
      index.assign(recorded.begin(), recorded.end());
      if (claimed_seek_rows(index) < claimed_seek_rows(built)) continue;
      ++whole;
      EXPECT_EQ(index, built);
    }
    EXPECT_EQ(recording.seek_use().refused, 0);
  }
  EXPECT_GT(used, 350);   // of 720
  EXPECT_GT(whole, 30);   // of 60
  EXPECT_GT(longer, 30);  // indexes that a later crop made longer
}

// Rows that were recorded above damage do not hide it, and damage is never recorded.
TEST_F(SeekIndexTest, DamageBelowTheRecordedRowsIsSeen) {
  const Size size{200, 200};
  JpegKind kind{.quality = 96, .restart_rows = 1};
  Bytes file = make_jpeg(size, kind);
  size_t marker = file.size() - 3;
  while (file[marker] != 0xFF || file[marker + 1] < 0xD0 || file[marker + 1] > 0xD7) --marker;
  file.erase(file.begin() + static_cast<ptrdiff_t>(marker) - 40,
             file.begin() + static_cast<ptrdiff_t>(marker));
  const CropSpec high{{0, 0, 200, 100}, {24, 24}, {0, 0, 24, 24}};
  const CropSpec low{{80, 100, 100, 100}, {24, 24}, {0, 0, 24, 24}};
  const CropSpec below{{80, 130, 50, 20}, {24, 24}, {0, 0, 24, 24}};
  const Bytes index = recorded_index(file, high);
  decoder_.record_places();
  EXPECT_TRUE(decoder_.decode(file, below, plain_.view(), index));  // reads on behind the index
  EXPECT_GT(decoder_.recorded_index().size(), index.size());
  EXPECT_FALSE(decoder_.decode(file, low, plain_.view(), index));
  EXPECT_TRUE(decoder_.recorded_index().empty());
  EXPECT_FALSE(decoder_.decode(file, low, plain_.view()));
}

// Makes every upper part of the file leave an index, and uses it for crops from its lower edge on.
// The parameter: kind of colours, sampling. libjpeg reads several rows of a grey file at once if
// its component has such a factor.
class DamageBehindRecordedRows : public SeekIndexTest,
                                 public ::testing::WithParamInterface<std::pair<JpegColours, int>> {
 protected:
  // A file with a restart marker per row of MCUs, and the place of the one in its middle.
  Bytes file_with_markers(size_t& marker) {
    JpegKind kind{.colours = GetParam().first, .quality = 97, .restart_rows = 1};
    kind.sampling_x = kind.sampling_y = GetParam().second;
    const Bytes file = make_jpeg({240, 240}, kind);
    marker = file.size() / 2;
    while (file[marker] != 0xFF || file[marker + 1] < 0xD0 || file[marker + 1] > 0xD7) ++marker;
    return file;
  }

  void expect_seen(const Bytes& file) {
    int intact = 0, damaged = 0;
    for (int bottom = 40; bottom <= 240; bottom += 2) {
      const CropSpec upper{{0, 0, 240, bottom}, {24, 24}, {0, 0, 24, 24}};
      CropDecoder recording(kSeekMaxPixels, PixelPolicy::fast);
      recording.record_places();
      const bool is_good = recording.decode(file, upper, plain_.view());
      const Bytes index(recording.recorded_index().begin(), recording.recorded_index().end());
      is_good ? ++intact : ++damaged;
      EXPECT_TRUE(is_good || index.empty());
      for (int y = bottom - 8; !index.empty() && y + 8 <= 240 && y < bottom + 24; y += 2) {
        expect_same(file, index, {{90, y, 60, 8}, {24, 24}, {0, 0, 24, 24}});
      }
    }
    EXPECT_GT(intact, 20);
    EXPECT_GT(damaged, 20);
  }
};

TEST_P(DamageBehindRecordedRows, AByteTooMuchIsSeen) {
  size_t marker = 0;
  Bytes file = file_with_markers(marker);
  file.insert(file.begin() + static_cast<ptrdiff_t>(marker), 0x55);
  expect_seen(file);
}

TEST_P(DamageBehindRecordedRows, MissingBytesAreSeen) {
  size_t marker = 0;
  Bytes file = file_with_markers(marker);
  const auto begin = file.begin() + static_cast<ptrdiff_t>(marker) + 2;
  file.erase(begin, begin + 100);
  expect_seen(file);
}

INSTANTIATE_TEST_SUITE_P(Kinds, DamageBehindRecordedRows,
                         ::testing::Values(std::pair{JpegColours::ycc, 1},
                                           std::pair{JpegColours::ycc, 2},
                                           std::pair{JpegColours::gray, 2}));

TEST_F(SeekIndexTest, NothingIsRecordedInVain) {
  const CropSpec spec{{0, 0, 90, 50}, {24, 24}, {0, 0, 24, 24}};
  JpegKind kind{.quality = 96};
  const Bytes file = make_jpeg({200, 200}, kind);
  EXPECT_TRUE(decoder_.decode(file, spec, plain_.view()));
  EXPECT_TRUE(decoder_.recorded_index().empty());  // it is off
  decoder_.record_places();
  const Bytes index = recorded_index(file, spec);
  CropSpec lower = spec;
  lower.crop.y = 8;
  EXPECT_TRUE(decoder_.decode(file, lower, plain_.view(), index));
  EXPECT_TRUE(decoder_.recorded_index().empty());  // a row more
  EXPECT_TRUE(decoder_.decode(file, spec, plain_.view(), index_of(file, SeekStep::eight)));
  EXPECT_TRUE(decoder_.recorded_index().empty());  // it has all rows
  EXPECT_TRUE(decoder_.decode(make_jpeg({90, 60}, {}), spec, plain_.view()));
  EXPECT_TRUE(decoder_.recorded_index().empty());  // the file is small
}

// An index guarantees that libjpeg-turbo accepts the whole file.
TEST_F(SeekIndexTest, IsMadeOfGoodFilesOnly) {
  std::mt19937 random(6);
  LibjpegPath libjpeg(kSeekMaxPixels);
  Pixels whole{{72, 88}};
  const CropSpec all{{0, 0, 72, 88}, {72, 88}, {0, 0, 72, 88}};
  int built = 0, trials = 0;
  Bytes index;
  for (uint32_t seed = 1; seed <= 30; ++seed) {
    JpegKind kind{.sampling_x = seed % 2 == 0 ? 1 : 2, .sampling_y = seed / 2 % 2 == 0 ? 1 : 2};
    const Bytes file = recode_jpeg(make_jpeg({72, 88}, kind, seed), {seed % 3 == 0 ? 4 : 0, true});
    EXPECT_FALSE(builder_.build(std::span(file).first(file.size() - 2), SeekStep::row, index));
    for (int trial = 0; trial < 60; ++trial, ++trials) {
      Bytes bad = file;
      const size_t at = bad.size() - 1 - random() % (bad.size() / 2);
      bad[at] ^= static_cast<uint8_t>(1u << random() % 8);
      if (!builder_.build(bad, kSteps[trial % 2], index)) continue;
      ++built;
      EXPECT_TRUE(libjpeg.decode(bad, all, whole.view()).ok()) << "seed " << seed << " at " << at;
    }
  }
  EXPECT_GT(built, trials / 10);  // another value is not damage that anyone can detect
  EXPECT_LT(built, trials);
  JpegKind progressive{.progressive = true};
  EXPECT_FALSE(builder_.build(make_jpeg({72, 88}, progressive), SeekStep::row, index));
  EXPECT_FALSE(builder_.build({}, SeekStep::row, index));
}

}  // namespace
}  // namespace stoker
