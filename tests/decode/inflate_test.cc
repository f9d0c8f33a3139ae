// Deflated data, row filters and checksums of PNG: each against a plain twin (zlib; loops).
#include "decode/codec/inflate.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <vector>

#include "decode/codec/checksums.h"
#include "decode/codec/png_filters.h"
#include "tests/decode/every_target.h"
#include "tests/decode/inflate_input.h"
#include "tests/decode/png_maker.h"

namespace stoker {
namespace {

using Bytes = std::vector<uint8_t>;

// Bytes with long matches, short ones, and literals of few or many kinds.
Bytes some_bytes(std::mt19937& random, size_t count) {
  Bytes bytes;
  while (bytes.size() < count) {
    const size_t length = 1 + random() % (random() % 4 == 0 ? 600 : 20);
    const size_t back = bytes.empty() ? 0 : 1 + random() % std::min<size_t>(bytes.size(), 40'000);
    if (back == 0 || random() % 3 == 0) {
      const unsigned kinds = random() % 2 == 0 ? 4 : 256;
      for (size_t i = 0; i < length; ++i) bytes.push_back(static_cast<uint8_t>(random() % kinds));
    } else {
      for (size_t i = 0; i < length; ++i) bytes.push_back(bytes[bytes.size() - back]);
    }
  }
  bytes.resize(count);
  return bytes;
}

// Reads pieces of `step` bytes, and compares.
void expect_reads(Inflater& inflater, const Bytes& expected, size_t step, size_t total) {
  for (size_t at = 0; at < total;) {
    const size_t count = std::min(step, total - at);
    const uint8_t* read = inflater.read(count);
    ASSERT_NE(read, nullptr) << at;
    ASSERT_TRUE(std::equal(read, read + count, expected.data() + at)) << at;
    at += count;
  }
}

TEST(Inflate, StreamsOfEveryKind) {
  std::mt19937 random(1);
  Inflater inflater;
  for (int round = 0; round < 300; ++round) {
    const Bytes bytes = some_bytes(random, random() % (round % 20 == 0 ? 400'000 : 30'000));
    constexpr int kStrategies[] = {Z_DEFAULT_STRATEGY, Z_FILTERED, Z_HUFFMAN_ONLY, Z_RLE, Z_FIXED};
    const Bytes packed = deflate(bytes, round % 10, kStrategies[random() % 5]);
    InflatePieces pieces(packed, random() % 3 == 0 ? 1 + random() % 40 : 1 + random() % 20'000);
    const size_t total = random() % 2 == 0 ? bytes.size() : random() % (bytes.size() + 1);
    const size_t step = 1 + random() % 5'000;
    SCOPED_TRACE(::testing::Message() << round << ": " << total << " of " << bytes.size());
    inflater.begin(pieces, {step, total, true});
    expect_reads(inflater, bytes, step, total);
    if (HasFatalFailure()) return;
    EXPECT_TRUE(inflater.ends_well());
    EXPECT_EQ(inflater.read(1), nullptr);
  }
}

// The window's earlier content does not show, for every distance near its end.
TEST(Inflate, MatchesReachBackOverTheWholeWindow) {
  std::mt19937 random(2);
  Inflater inflater;
  for (const size_t distance :
       {1u, 2u, 3u, 7u, 15u, 16u, 17u, 31u, 32u, 32505u, 32506u, 32767u, 32768u}) {
    Bytes bytes(distance);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    while (bytes.size() < 300'000) bytes.push_back(bytes[bytes.size() - distance]);
    const Bytes packed = deflate(bytes, 9, Z_DEFAULT_STRATEGY);
    InflatePieces pieces(packed, packed.size());
    inflater.begin(pieces, {1'000, bytes.size(), true});
    SCOPED_TRACE(distance);
    expect_reads(inflater, bytes, 1'000, bytes.size());
    EXPECT_TRUE(inflater.ends_well());
  }
}

TEST(Inflate, DecodesLittleMoreThanIsWanted) {
  std::mt19937 random(3);
  const Bytes bytes = some_bytes(random, 2'000'000);
  const Bytes packed = deflate(bytes, 6, Z_DEFAULT_STRATEGY);
  constexpr size_t kPiece = 256;
  InflatePieces pieces(packed, kPiece);
  Inflater inflater;
  inflater.begin(pieces, {4'000, 500'000});
  expect_reads(inflater, bytes, 4'000, 500'000);
  // A quarter of the bytes, and what a match at their end may take.
  EXPECT_LT(pieces.given(), packed.size() / kPiece * 27 / 100);
  EXPECT_LT(inflater.scratch_bytes(), 110'000);
}

// The same bytes and the same verdict as zlib's for streams that are damaged anywhere.
TEST(Inflate, DamagedStreams) {
  std::mt19937 random(4);
  int refused = 0, intact = 0;
  for (int round = 0; round < 6'000; ++round) {
    const Bytes bytes = some_bytes(random, 1 + random() % 600);
    Bytes packed = deflate(bytes, round % 10, random() % 4 == 0 ? Z_FIXED : Z_DEFAULT_STRATEGY);
    for (int flips = 1 + round % 3; flips > 0; --flips) {
      packed[random() % std::min<size_t>(packed.size(), round % 2 == 0 ? 60 : 1'000)] ^=
          static_cast<uint8_t>(1u << random() % 8);
    }
    if (random() % 5 == 0) packed.resize(random() % packed.size());
    const InflateResult theirs = inflate_by_zlib(packed, 3'000);
    const InflateResult ours = inflate_by_us(packed, 3'000, 1 + random() % 50);
    ASSERT_EQ(ours.bytes, theirs.bytes) << round;
    ASSERT_EQ(ours.is_complete, theirs.is_complete) << round;
    ++(theirs.is_complete ? intact : refused);
  }
  EXPECT_GT(refused, 3'000);
  EXPECT_GT(intact, 5);
}

// Runs a test with every instruction set that this machine has.
using CodecKernels = EveryTarget;

INSTANTIATE_TEST_SUITE_P(Targets, CodecKernels, every_target(), target_name);

TEST_P(CodecKernels, ChecksumsAreZlibs) {
  std::mt19937 random(5);
  Bytes bytes(20'000);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random() % 3 == 0 ? random() : 255);
  for (size_t i = 0; i < 2'000; ++i) {
    const size_t at = random() % 64;
    const size_t count = i < 600 ? i : random() % (bytes.size() - at);
    const std::span<const uint8_t> part(bytes.data() + at, count);
    ASSERT_EQ(crc32(part), ::crc32(0, part.data(), static_cast<uInt>(count))) << count;
    const auto sum = static_cast<uint32_t>(random() % 65521 << 16 | random() % 65521);
    ASSERT_EQ(adler32(sum, part), ::adler32(sum, part.data(), static_cast<uInt>(count))) << count;
  }
}

uint8_t predict(int filter, int left, int above, int corner) {
  const int base = left + above - corner;
  const int a = std::abs(base - left), b = std::abs(base - above), c = std::abs(base - corner);
  const int paeth = a <= b && a <= c ? left : b <= c ? above : corner;
  const int all[] = {0, left, above, (left + above) / 2, paeth};
  return static_cast<uint8_t>(all[filter]);
}

TEST_P(CodecKernels, PngFiltersArePlainLoops) {
  std::mt19937 random(6);
  for (int round = 0; round < 5'000; ++round) {
    constexpr size_t kPixels[] = {1, 2, 3, 4, 6, 8};
    const size_t pixel = kPixels[random() % 6], bytes = pixel * (1 + random() % 40);
    const size_t line = 1 + bytes + random() % 20;  // a part of each row is undone
    const int count = 1 + static_cast<int>(random() % kPngRowsAtOnce);
    Bytes filtered(static_cast<size_t>(count) * line + kPngRowMargin);
    for (uint8_t& byte : filtered) {
      byte = static_cast<uint8_t>(random() % 4 == 0 ? random() % 2 * 255 : random());
    }
    for (int r = 0; r < count; ++r) filtered[static_cast<size_t>(r) * line] = random() % 5;
    const size_t stride = bytes + 2 * kPngRowMargin;
    Bytes rows(static_cast<size_t>(count + 1) * stride);
    for (uint8_t& byte : rows) byte = static_cast<uint8_t>(random());
    Bytes expected = rows;
    uint8_t* const first = rows.data() + stride + kPngRowMargin;
    ASSERT_TRUE(undo_png_filters({filtered.data(), line, first, stride, bytes, pixel, count}));
    for (int r = 0; r < count; ++r) {
      const uint8_t* from = filtered.data() + static_cast<size_t>(r) * line;
      uint8_t* to = expected.data() + static_cast<size_t>(r + 1) * stride + kPngRowMargin;
      const uint8_t* above = to - stride;
      for (size_t i = 0; i < bytes; ++i) {
        to[i] =
            static_cast<uint8_t>(from[1 + i] + predict(from[0], i < pixel ? 0 : to[i - pixel],
                                                       above[i], i < pixel ? 0 : above[i - pixel]));
      }
      ASSERT_TRUE(std::equal(to, to + bytes, first + static_cast<size_t>(r) * stride))
          << round << " row " << r << " of " << count << ", filter " << int{from[0]};
    }
  }
}

TEST(PngFilters, UnknownOnesAreRefused) {
  Bytes filtered(2 * 4 + kPngRowMargin), rows(3 * (3 + 2 * kPngRowMargin));
  const size_t stride = 3 + 2 * kPngRowMargin;
  filtered[4] = 5;
  const PngRows both{filtered.data(), 4, rows.data() + stride + kPngRowMargin, stride, 3, 3, 2};
  EXPECT_FALSE(undo_png_filters(both));
}

}  // namespace
}  // namespace stoker
