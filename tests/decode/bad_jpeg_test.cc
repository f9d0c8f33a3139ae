// Files that are broken, malicious or huge give a status; nothing crashes, and no memory is
// allocated for data that do not exist.
#include <gtest/gtest.h>

#include <random>

#include "decode/image_decoder.h"
#include "decode/jpeg/libjpeg_decoder.h"
#include "tests/decode/jpeg_maker.h"

namespace stoker {
namespace {

using Bytes = std::vector<uint8_t>;

DecodeStatus decode_crop(ImageDecoder& decoder, const Bytes& file, Box crop) {
  Pixels out({crop.width, crop.height});
  return decoder.decode(file, plain_crop(crop), out.view());
}

DecodeCode decode_code(const Bytes& file, Box crop) {
  ImageDecoder decoder;
  return decode_crop(decoder, file, crop).code;
}

Bytes cut(const Bytes& file, size_t size) { return {file.begin(), file.begin() + size}; }

size_t find_marker(const Bytes& file, uint8_t marker) {
  for (size_t i = 0; i + 1 < file.size(); ++i) {
    if (file[i] == 0xFF && file[i + 1] == marker) return i;
  }
  return file.size();
}

constexpr uint8_t kStartOfScan = 0xDA;

TEST(BadJpeg, NotAnImage) {
  EXPECT_EQ(decode_code({}, {0, 0, 1, 1}), DecodeCode::empty);
  EXPECT_EQ(decode_code({'h', 'e', 'l', 'l', 'o'}, {0, 0, 1, 1}), DecodeCode::not_an_image);
  EXPECT_EQ(decode_code(Bytes(1000, 0), {0, 0, 1, 1}), DecodeCode::not_an_image);
  EXPECT_EQ(decode_code({0xFF}, {0, 0, 1, 1}), DecodeCode::not_an_image);
}

// Wherever the file ends, and for any crop: never ok, and truncated once the header is complete.
TEST(BadJpeg, EveryTruncationIsSeen) {
  ImageDecoder decoder;
  for (const bool progressive : {false, true}) {
    const Bytes file = make_jpeg({64, 48}, {.progressive = progressive, .exif_orientation = 3});
    const size_t scan = find_marker(file, kStartOfScan);
    for (size_t size = 3; size < file.size(); ++size) {
      const DecodeStatus status = decode_crop(decoder, cut(file, size), {0, 0, 8, 1});
      ASSERT_FALSE(status.ok()) << size;
      ASSERT_EQ(status.code, DecodeCode::truncated) << size << " of " << scan << status.message;
      ASSERT_LE(status.byte_offset, static_cast<int64_t>(size));
    }
    EXPECT_TRUE(decode_crop(decoder, file, {0, 0, 8, 1}).ok());
  }
}

// info() reads most headers without libjpeg, but must give the same result.
TEST(BadJpeg, InfoSaysWhatOpenSays) {
  JpegDecoder decoder(64 * 47);
  const auto expect_same = [&](const Bytes& file, const std::string& what) {
    Size opened, informed;
    const DecodeStatus expected = decoder.open(file, opened);
    if (expected.ok()) decoder.close();
    const DecodeStatus status = decoder.info(file, informed);
    EXPECT_EQ(status.code, expected.code) << what;
    EXPECT_EQ(status.message, expected.message) << what;
    EXPECT_EQ(status.byte_offset, expected.byte_offset) << what;
    EXPECT_EQ(informed, opened) << what;
  };
  std::mt19937 random(4);
  for (const bool progressive : {false, true}) {
    for (const int height : {47, 48}) {
      Bytes file = make_jpeg({64, height}, {.progressive = progressive, .exif_orientation = 3});
      const size_t scan = find_marker(file, kStartOfScan);
      expect_same(file, "whole");
      for (size_t size = 1; size < scan; size += 5) expect_same(cut(file, size), "cut");
      for (int i = 0; i < 300; ++i) {
        Bytes bad = file;
        const size_t at = random() % scan;
        bad[at] ^= static_cast<uint8_t>(1 << random() % 8);
        expect_same(bad, "byte " + std::to_string(at));
      }
    }
  }
}

TEST(BadJpeg, WhatFollowsTheEndMarkerDoesNotMatter) {
  Bytes file = make_jpeg({64, 48}, {});
  file.resize(file.size() + 5000, 0);
  EXPECT_EQ(decode_code(file, {3, 3, 20, 20}), DecodeCode::ok);
  file.insert(file.end(), {'t', 'r', 'a', 'i', 'l', 'e', 'r'});
  EXPECT_EQ(decode_code(file, {3, 3, 20, 20}), DecodeCode::ok);
}

// A download that was extended to its full length with zeros.
TEST(BadJpeg, ZerosInsteadOfTheEndAreTruncation) {
  Bytes file = make_jpeg({64, 48}, {});
  std::fill(file.begin() + static_cast<ptrdiff_t>(file.size() / 2), file.end(), 0);
  EXPECT_EQ(decode_code(file, {0, 0, 8, 8}), DecodeCode::truncated);
}

// An end marker inside the header (of an EXIF thumbnail, say) does not count.
TEST(BadJpeg, AnEndMarkerBeforeTheScanDoesNotCount) {
  Bytes file = make_jpeg({64, 48}, {});
  file.resize(file.size() - 2);
  const Bytes comment = {0xFF, 0xFE, 0, 6, 0xFF, 0xD8, 0xFF, 0xD9};
  file.insert(file.begin() + 2, comment.begin(), comment.end());
  EXPECT_EQ(decode_code(file, {0, 0, 8, 8}), DecodeCode::truncated);
}

// Damage counts if the crop reads it. Restart markers let libjpeg continue, but it warned.
TEST(BadJpeg, DamageCountsWhereItIsRead) {
  Bytes file = make_jpeg({128, 128}, {.restart_rows = 1});
  const size_t third = find_marker(file, 0xD2);  // between MCU rows 2 and 3, pixels 24...
  ASSERT_LT(third, file.size());
  file[third + 1] = 0xD6;
  EXPECT_EQ(decode_code(file, {0, 0, 128, 128}), DecodeCode::corrupt);
  EXPECT_EQ(decode_code(file, {40, 60, 10, 10}), DecodeCode::corrupt);
  EXPECT_EQ(decode_code(file, {40, 0, 10, 20}), DecodeCode::ok);
}

TEST(BadJpeg, RegionsOutsideTheImageAreRefused) {
  ImageDecoder decoder;
  const Bytes file = make_jpeg({64, 48}, {});
  for (const Box box : {Box{-1, 0, 8, 8},
                        {0, -1, 8, 8},
                        {57, 0, 8, 8},
                        {0, 41, 8, 8},
                        {0, 0, 65, 1},
                        {2147483640, 0, 8, 8}}) {
    EXPECT_EQ(decode_crop(decoder, file, box).code, DecodeCode::bad_region)
        << box.x << "," << box.y;
  }
  EXPECT_TRUE(decode_crop(decoder, file, {56, 40, 8, 8}).ok());
  // The window needs only existing pixels, but the crop is wrong.
  Pixels out({8, 8});
  EXPECT_EQ(decoder.decode(file, {{0, 0, 70, 48}, {70, 48}, {0, 0, 8, 8}}, out.view()).code,
            DecodeCode::bad_region);
  EXPECT_EQ(decoder.decode(file, {{0, 0, 64, 48}, {20, 20}, {13, 0, 8, 8}}, out.view()).code,
            DecodeCode::bad_region);
}

TEST(BadJpeg, HugeHeadersAllocateNothing) {
  const Bytes file = make_jpeg({64, 48}, {.progressive = true});
  ImageDecoder decoder;
  // Within max_pixels, but the file cannot hold it: it is refused before the coefficients are
  // allocated (a gigabyte; only the machine limits the test's memory).
  const DecodeStatus empty_promise =
      decode_crop(decoder, with_size(file, {13'000, 13'000}), {0, 0, 8, 8});
  EXPECT_EQ(empty_promise.code, DecodeCode::truncated) << empty_promise.message;
  const DecodeStatus too_large =
      decode_crop(decoder, with_size(file, {60'000, 60'000}), {0, 0, 8, 8});
  EXPECT_EQ(too_large.code, DecodeCode::too_large) << too_large.message;
  EXPECT_NE(too_large.message.find("60000x60000"), std::string::npos) << too_large.message;
  ImageInfo info;
  EXPECT_EQ(decoder.info(with_size(file, {60'000, 60'000}), info).code, DecodeCode::too_large);
  EXPECT_EQ(decode_crop(decoder, with_size(file, {0, 10}), {0, 0, 8, 8}).code, DecodeCode::corrupt);
  EXPECT_LT(decoder.scratch_bytes(), 1 << 20);
}

TEST(BadJpeg, MaxPixelsIsInclusive) {
  const Bytes file = make_jpeg({100, 100}, {});
  ImageDecoder allowed({.max_pixels = 10'000});
  ImageDecoder refused({.max_pixels = 9'999});
  EXPECT_TRUE(decode_crop(allowed, file, {0, 0, 8, 8}).ok());
  EXPECT_EQ(decode_crop(refused, file, {0, 0, 8, 8}).code, DecodeCode::too_large);
}

TEST(BadJpeg, TwelveBitsAreUnsupported) {
  Bytes file = make_jpeg({64, 48}, {});
  const size_t frame = find_marker(file, 0xC0);
  file[frame + 1] = 0xC1;  // 12 bits exist in extended files only
  file[frame + 4] = 12;
  EXPECT_EQ(decode_code(file, {0, 0, 8, 8}), DecodeCode::unsupported);
}

// Hundreds of scans over the frame from a small file would occupy a worker for minutes.
TEST(BadJpeg, EndlessScansAreRefused) {
  const Bytes file = make_jpeg({64, 48}, {.interleaved = false});
  const auto scan = file.begin() + static_cast<ptrdiff_t>(find_marker(file, kStartOfScan));
  const auto repeated = [&](int times) {
    Bytes out(file.begin(), scan);
    for (int i = 0; i < times; ++i) out.insert(out.end(), scan, file.end() - 2);
    out.insert(out.end(), {0xFF, 0xD9});
    return out;
  };
  EXPECT_EQ(decode_code(repeated(20), {0, 0, 8, 8}), DecodeCode::ok);
  EXPECT_EQ(decode_code(repeated(200), {0, 0, 8, 8}), DecodeCode::corrupt);
}

// After any failure the same object decodes the next file as if nothing had happened.
TEST(BadJpeg, FlippedBitsNeverCrashNorLeaveATrace) {
  std::mt19937 random(21);
  ImageDecoder decoder({.exif = ExifPolicy::apply});
  const Bytes good = make_jpeg({80, 60}, {.sampling_x = 2, .sampling_y = 2});
  const Pixels expected = decode_whole_jpeg(good);
  const std::vector<JpegKind> kinds = {
      {.sampling_x = 2, .sampling_y = 2, .exif_orientation = 6},
      {.progressive = true, .exif_orientation = 3, .exif_big_endian = true},
      {.colours = JpegColours::ycck, .sampling_x = 2},
      {.colours = JpegColours::gray, .restart_rows = 1},
      {.arithmetic = true}};
  int refused = 0;
  for (int i = 0; i < 4000; ++i) {
    Bytes file = make_jpeg({61, 47}, kinds[i % kinds.size()], static_cast<uint32_t>(i / 50));
    for (int flips = 1 + i % 4; flips > 0; --flips) {
      const size_t end = i % 3 == 0 ? std::min<size_t>(file.size(), 700) : file.size();
      file[random() % end] ^= static_cast<uint8_t>(1u << random() % 8);
    }
    if (i % 11 == 0) file.resize(random() % file.size());
    ImageInfo info;
    if (!decoder.info(file, info).ok()) {
      ++refused;
      continue;
    }
    Pixels out({16, 16});
    const CropSpec spec = {{0, 0, info.size.width, info.size.height}, {16, 16}, {0, 0, 16, 16}};
    if (!decoder.decode(file, spec, out.view()).ok()) ++refused;
    if (i % 100 == 0) {
      Pixels check({80, 60});
      ASSERT_TRUE(decoder.decode(good, plain_crop({0, 0, 80, 60}), check.view()).ok());
      ASSERT_EQ(check.packed(), expected.packed());
    }
  }
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace stoker
