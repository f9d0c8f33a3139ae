// Snappy from its beginning and from its middle: what find_in_snappy() says must give the same
// bytes as the whole stream, whatever the copies reach back to; broken streams are refused.
#include "pipeline/source/format/snappy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "pipeline/source/format/unpack.h"
#include "tests/support/collected_samples.h"
#include "tests/support/parquet_maker.h"
#include "tests/support/snappy_maker.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;

// Returns what comes out, or "error: ...".
std::string unpacked(BlobStorage storage, std::string_view packed, size_t length) {
  // Exactly as large as they are, so that AddressSanitizer sees what is read beside them.
  const std::vector<uint8_t> in(packed.begin(), packed.end());
  std::vector<uint8_t> out(length);
  const std::string wrong = unpack(storage, in, out);
  return wrong.empty() ? std::string(out.begin(), out.end()) : "error: " + wrong;
}

std::string from_place(const std::string& packed, const SnappyPart& place, SnappyRange range) {
  const auto offset = static_cast<size_t>(place.offset), length = static_cast<size_t>(place.length);
  if (place.as_it_is) return packed.substr(offset, length);
  const size_t skip = static_cast<size_t>(place.skip);
  const size_t wanted = static_cast<size_t>(range.end - range.begin);
  EXPECT_LE(offset + length, packed.size());
  return unpacked(BlobStorage::snappy, packed.substr(offset, length), skip + wanted).substr(skip);
}

// Cuts the text into ranges of `step` bytes, and looks each up.
std::vector<SnappyPart> check_ranges(const SnappyMaker& maker, size_t step) {
  std::vector<SnappyRange> ranges;
  for (size_t at = 0; at < maker.text().size(); at += step) {
    const size_t end = std::min(maker.text().size(), at + step);
    ranges.push_back({static_cast<int64_t>(at), static_cast<int64_t>(end)});
  }
  const std::vector<SnappyPart> places = find_in_snappy(bytes_of(maker.elements()), ranges);
  EXPECT_EQ(places.size(), ranges.size());
  for (size_t i = 0; i < places.size(); ++i) {
    const auto begin = static_cast<size_t>(ranges[i].begin);
    EXPECT_EQ(from_place(maker.elements(), places[i], ranges[i]), maker.text().substr(begin, step))
        << "range " << i << " of " << step << " bytes";
  }
  return places;
}

TEST(Snappy, EveryKindOfElement) {
  SnappyMaker maker;
  for (const size_t length : {1, 60, 61, 256, 257, 65536, 65537, 1 << 17}) {
    maker.literal(patternless(length, static_cast<uint32_t>(length)));
  }
  for (const size_t back : {1, 2, 3, 7, 8, 63, 64, 2047, 2048, 65535, 65536, 200000}) {
    for (const size_t length : {1, 3, 4, 5, 11, 12, 33, 64}) maker.copy(back, length);
  }
  const std::string stream = maker.stream();
  uint64_t length = 0;
  const size_t head = read_snappy_length(bytes_of(stream), length);
  EXPECT_EQ(length, maker.text().size());
  EXPECT_EQ(stream.substr(head), maker.elements());
  EXPECT_EQ(unpacked(BlobStorage::snappy, maker.elements(), maker.text().size()), maker.text());
  // It stops where the output is full, also inside an element.
  for (size_t bytes = 0; bytes < maker.text().size(); bytes += 9973) {
    EXPECT_EQ(unpacked(BlobStorage::snappy, maker.elements(), bytes),
              maker.text().substr(0, bytes));
  }
}

TEST(Snappy, BeginsAtAPieceThatWasPackedByItself) {
  SnappyMaker maker;
  std::string text;
  // Noise with words in it that come again, as in pictures with metadata.
  for (uint32_t i = 0; i < 100; ++i)
    text += patternless(5000, i) + "these words are in every image";
  maker.pack(text, 65536);
  const std::vector<SnappyPart> places = check_ranges(maker, 5030);
  int64_t largest = 0;
  for (const SnappyPart& place : places) largest = std::max(largest, place.skip);
  EXPECT_GT(largest, 0);
  EXPECT_LT(largest, 65536);
}

TEST(Snappy, GoesBackAsFarAsTheCopiesReach) {
  SnappyMaker maker;
  maker.literal(patternless(3000, 1));
  maker.literal(patternless(3000, 2));
  maker.literal(patternless(3000, 3));
  maker.copy(5000, 64);  // from the second literal
  maker.literal(patternless(3000, 4));
  std::vector<SnappyRange> range = {{9000, 9070}};
  std::vector<SnappyPart> places = find_in_snappy(bytes_of(maker.elements()), range);
  ASSERT_EQ(places.size(), 1u);
  EXPECT_FALSE(places[0].as_it_is);
  EXPECT_EQ(places[0].skip, 6000);  // it begins with the second
  EXPECT_EQ(from_place(maker.elements(), places[0], range[0]), maker.text().substr(9000, 70));
  // The last literal can be had by itself.
  range = {{10000, 11000}};
  places = find_in_snappy(bytes_of(maker.elements()), range);
  EXPECT_TRUE(places[0].as_it_is);
  EXPECT_EQ(from_place(maker.elements(), places[0], range[0]), maker.text().substr(10000, 1000));

  maker.copy(maker.text().size(), 4);  // from the very first byte: nothing before it stays
  maker.literal(patternless(3000, 5));
  const auto size = static_cast<int64_t>(maker.text().size());
  range = {{8990, 9010}, {size - 3002, size - 1}};
  places = find_in_snappy(bytes_of(maker.elements()), range);
  EXPECT_EQ(places[0].offset, 0);
  EXPECT_EQ(places[0].skip, 8990);
  EXPECT_EQ(places[1].offset, 0);
  for (const size_t step : {1, 7, 100, 3000, 20000}) check_ranges(maker, step);
}

TEST(Snappy, AnyRangeOfAnyStream) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    SnappyMaker maker;
    maker.literal(patternless(1 + random() % 3000, seed));
    for (uint32_t i = 0; i < 60; ++i) {
      if (random() % 3 == 0) {
        maker.literal(patternless(1 + random() % (seed % 2 == 0 ? 80 : 4000), i));
      } else {
        const size_t most = seed % 3 == 0 ? maker.text().size() : 500;
        maker.copy(1 + random() % std::min(most, maker.text().size()), 1 + random() % 64);
      }
    }
    for (const size_t step : {1 + random() % 40, 500 + random() % 900}) check_ranges(maker, step);
  }
}

TEST(Snappy, EmptyRangesNeedNothing) {
  SnappyMaker maker;
  maker.literal("abc");
  maker.copy(3, 6);
  const std::vector<SnappyRange> ranges = {{0, 0}, {2, 2}, {3, 3}, {4, 9}, {9, 9}, {9, 9}};
  const std::vector<SnappyPart> places = find_in_snappy(bytes_of(maker.elements()), ranges);
  ASSERT_EQ(places.size(), 6u);
  for (const size_t i : {0, 1, 2, 4, 5}) {
    EXPECT_TRUE(places[i].as_it_is) << i;
    EXPECT_EQ(places[i].length, 0) << i;
  }
  EXPECT_EQ(from_place(maker.elements(), places[3], ranges[3]), "bcabc");
  EXPECT_TRUE(find_in_snappy({}, {}).empty());
}

TEST(Snappy, BrokenStreamsAreRefused) {
  const auto error_of = [](std::string_view packed, size_t length) {
    return unpacked(BlobStorage::snappy, packed, length);
  };
  EXPECT_EQ(error_of("", 1),
            "error: at byte 0 of Snappy's: the packed bytes end after 0 of 1 unpacked ones");
  EXPECT_EQ(
      error_of("\x08"
               "ab",
               3),
      "error: at byte 0 of Snappy's: a literal of 3 bytes does not fit into the packed bytes");
  EXPECT_EQ(error_of("\x04"
                     "ab\x0a\x03",
                     9),
            "error: at byte 3 of Snappy's: the packed bytes end after 2 of 9 unpacked ones");
  EXPECT_EQ(error_of(std::string("\x04"
                                 "ab\x0a\x03\x00",
                                 6),
                     5),
            "error: at byte 3 of Snappy's: a copy from 3 bytes back, and there are 2");
  EXPECT_EQ(error_of(std::string("\x04"
                                 "ab\x0a\x00\x00",
                                 6),
                     5),
            "error: at byte 3 of Snappy's: a copy from 0 bytes back, and there are 2");
  // Every stream that ends too early.
  SnappyMaker maker;
  maker.pack(patternless(300, 1) + std::string(300, 'x') + patternless(300, 2), 65536);
  for (size_t bytes = 0; bytes < maker.elements().size(); ++bytes) {
    EXPECT_THAT(error_of(maker.elements().substr(0, bytes), maker.text().size()),
                HasSubstr("error: "));
    const std::vector<SnappyRange> all = {{0, static_cast<int64_t>(maker.text().size())}};
    EXPECT_TRUE(find_in_snappy(bytes_of(maker.elements()).first(bytes), all).empty());
  }
  uint64_t length = 0;
  EXPECT_EQ(read_snappy_length(bytes_of("\xff\xff\xff\xff\xff\x01"), length), 0u);
  EXPECT_EQ(read_snappy_length(bytes_of("\xff"), length), 0u);
  EXPECT_EQ(read_snappy_length(bytes_of(""), length), 0u);
}

TEST(Unpack, ZstandardUpToWhereItIsNeeded) {
  EXPECT_TRUE(can_unpack(BlobStorage::snappy));
  EXPECT_FALSE(can_unpack(BlobStorage::bytes));
  EXPECT_EQ(can_unpack(BlobStorage::zstd), has_zstd());
  const std::string text = patternless(3'000'000, 1);
  const std::string frame = pack_zstd(text);
  if (!has_zstd()) {
    EXPECT_EQ(unpacked(BlobStorage::zstd, frame, 10),
              "error: packed with Zstandard, and this build has no libzstd");
    return;
  }
  std::vector<uint8_t> out(text.size());
  std::vector<int64_t> needed;
  ASSERT_EQ(unpack_zstd(bytes_of(frame), out, &needed), "");
  EXPECT_EQ(std::string(out.begin(), out.end()), text);
  for (const size_t end :
       {size_t{1}, size_t{262144}, size_t{262145}, text.size() - 1, text.size()}) {
    const auto bytes = static_cast<size_t>(needed.at((end - 1) / size_t{kZstdStep}));
    EXPECT_LE(bytes, std::min(frame.size(), end + (size_t{1} << 19)));
    EXPECT_EQ(unpacked(BlobStorage::zstd, frame.substr(0, bytes), end), text.substr(0, end)) << end;
  }
  EXPECT_EQ(unpacked(BlobStorage::zstd, frame.substr(0, 1000), text.size()),
            "error: Zstandard's bytes end after 984 of 3000000 unpacked ones");
  EXPECT_EQ(unpacked(BlobStorage::zstd, frame, text.size() + 1),
            "error: Zstandard's bytes end after 3000000 of 3000001 unpacked ones");
  EXPECT_THAT(unpacked(BlobStorage::zstd, "no frame", 1),
              HasSubstr("error: at byte 0 of Zstandard's"));
}

}  // namespace
}  // namespace stoker
