// Everything that holds for files of all codecs, and broken ones. (Their pixels: golden_test.cc.)
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "decode/image_decoder.h"
#include "tests/decode/pixels.h"

namespace stoker {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes golden_file(const std::string& name) {
  return read_file(std::string(STOKER_GOLDEN_DIR) + "/decode/" + name);
}

DecodeStatus decode_golden(ImageDecoder& decoder, const Bytes& file) {
  Pixels out({16, 16});
  ImageInfo info;
  const DecodeStatus status = decoder.info(file, info);
  if (!status.ok()) return status;
  return decoder.decode(file, {{0, 0, info.size.width, info.size.height}, {16, 16}, {0, 0, 16, 16}},
                        out.view());
}

constexpr const char* kFiles[] = {
    "images/rgb.png",  "images/palette.png",    "images/gray_16.png",   "images/rgb.bmp",
    "images/gray.bmp", "images/lossy.webp",     "images/lossless.webp", "images/rgba_lossy.webp",
    "images/rgb.tif",  "images/rgb_16_big.tif", "images/rgb_lzw.tif"};

TEST(Codec, InfoNeedsNoCodecs) {
  const struct {
    const char* name;
    ImageFormat format;
    Size size;
    int orientation = 1;
  } files[] = {{"images/rgb.png", ImageFormat::png, {45, 38}},
               {"images/rgb.bmp", ImageFormat::bmp, {45, 38}},
               {"images/lossy.webp", ImageFormat::webp, {45, 38}},
               {"images/lossless.webp", ImageFormat::webp, {45, 38}},
               {"images/rgb.tif", ImageFormat::tiff, {45, 38}},
               {"variants/rgb_reversible.jp2", ImageFormat::jpeg2000, {23, 17}},
               {"variants/la_tiles.jp2", ImageFormat::jpeg2000, {23, 17}},
               {"variants/rgb_bare.jp2", ImageFormat::jpeg2000, {23, 17}},
               {"avifs/turned_1_rgb.avif", ImageFormat::avif, {23, 17}, 8}};
  for (const auto& [name, format, size, orientation] : files) {
    for (const ExifPolicy exif : {ExifPolicy::ignore, ExifPolicy::apply}) {
      ImageInfo info;
      ASSERT_TRUE(ImageDecoder({.exif = exif}).info(golden_file(name), info).ok()) << name;
      EXPECT_EQ(info.format, format) << name;
      EXPECT_EQ(info.orientation, orientation) << name;
      const Size turned{size.height, size.width};
      const bool is_turned = exif == ExifPolicy::apply && orientation > 4;
      EXPECT_EQ(info.size, is_turned ? turned : size) << name;
    }
  }
}

TEST(Codec, WithoutCodecsTheirFormatsAreUnsupported) {
  if (STOKER_HAS_CODECS) GTEST_SKIP() << "built with them";
  ImageDecoder decoder;
  const DecodeStatus status = decode_golden(decoder, golden_file("images/lossy.webp"));
  EXPECT_EQ(status.code, DecodeCode::unsupported);
  EXPECT_NE(status.message.find("libwebp"), std::string::npos);
}

TEST(Codec, EveryTruncationIsSeen) {
  ImageDecoder decoder;
  const auto expect_truncated = [&](const std::string& name, size_t first, size_t step,
                                    size_t known) {
    const Bytes file = golden_file(name);
    for (size_t size = first; size < file.size(); size += step) {
      const DecodeStatus status = decode_golden(decoder, {file.begin(), file.begin() + size});
      ASSERT_FALSE(status.ok()) << name << " " << size << " of " << file.size();
      if (size <= known) continue;
      ASSERT_EQ(status.code, DecodeCode::truncated) << name << " " << size << status.message;
    }
  };
  for (const char* name : kFiles) expect_truncated(name, 16, 7, 80);
  for (const char* name : {"rgb_reversible.jp2", "rgb_tiles.jp2", "rgb_bare.jp2"}) {
    expect_truncated(std::string("variants/") + name, 12, 1, 0);
  }
  for (const char* name : {"420_full.avif", "444_full_alpha.avif", "turned_1_mirror_0_rgb.avif",
                           "icc.avif", "grid_420_8_rgba.avif"}) {
    expect_truncated(std::string("avifs/") + name, 12, 3, 0);
  }
}

TEST(Codec, MaxPixelsHolds) {
  ImageDecoder decoder({.max_pixels = 38 * 45 - 1});
  for (const char* name :
       {"images/rgb.png", "images/rgb.bmp", "images/lossy.webp", "images/rgb.tif"}) {
    EXPECT_EQ(decode_golden(decoder, golden_file(name)).code, DecodeCode::too_large) << name;
  }
}

// A valid header is not enough: the size of the pixels must agree with it.
TEST(Codec, HugeHeadersAreRefused) {
  ImageDecoder decoder({.max_pixels = int64_t{1} << 40});
  Bytes bmp = golden_file("images/rgb.bmp");
  bmp[19] = 0x7f;  // the width's second byte
  EXPECT_EQ(decode_golden(decoder, bmp).code, DecodeCode::truncated);
  Bytes png = golden_file("images/rgb.png");
  png[18] = 0x7f;
  EXPECT_EQ(decode_golden(decoder, png).code, DecodeCode::corrupt);  // its checksum is wrong now
}

TEST(Codec, PngChecksumsAreVerified) {
  ImageDecoder decoder;
  Bytes png = golden_file("images/rgb.png");
  png[png.size() / 2] ^= 1;
  const DecodeStatus status = decode_golden(decoder, png);
  EXPECT_EQ(status.code, DecodeCode::corrupt);
  EXPECT_NE(status.message.find("checksum"), std::string::npos) << status.message;
}

// A huge canvas in a few bytes, a frame that does not fit, and one without its pixels.
TEST(Codec, GifsThatPromiseTooMuch) {
  const auto gif = [](int width, int height, int frame_width, int frame_height) {
    Bytes file = {'G', 'I', 'F', '8', '9', 'a'};
    const auto add = [&](int value) {
      file.push_back(static_cast<uint8_t>(value));
      file.push_back(static_cast<uint8_t>(value >> 8));
    };
    add(width);
    add(height);
    file.insert(file.end(), {0, 0, 0, ','});
    add(0);
    add(0);
    add(frame_width);
    add(frame_height);
    file.insert(file.end(), {0, 2, 2, 0x4c, 0x01, 0, ';'});  // clear, a pixel, the end
    return file;
  };
  ImageDecoder decoder;
  EXPECT_TRUE(decode_golden(decoder, gif(1, 1, 1, 1)).ok());
  EXPECT_TRUE(decode_golden(decoder, gif(3000, 3000, 1, 1)).ok());
  EXPECT_EQ(decode_golden(decoder, gif(1, 1, 2, 2)).code, DecodeCode::corrupt);
  EXPECT_EQ(decode_golden(decoder, gif(65535, 65535, 1, 1)).code, DecodeCode::too_large);
  EXPECT_EQ(decode_golden(decoder, gif(1, 1, 65535, 65535)).code, DecodeCode::too_large);
  EXPECT_EQ(decode_golden(decoder, gif(1, 1, 0, 1)).code, DecodeCode::corrupt);
  ImageDecoder any({.max_pixels = int64_t{1} << 40});
  Bytes file = gif(1, 1, 9, 9);
  file.erase(file.end() - 3, file.end());
  EXPECT_EQ(decode_golden(any, file).code, DecodeCode::truncated);
}

TEST(Codec, RunsOfABmpMayEndTooEarly) {
  ImageDecoder decoder;
  Bytes file = golden_file("variants/rle8_runs.bmp");
  ASSERT_TRUE(decode_golden(decoder, file).ok());
  EXPECT_EQ(decode_golden(decoder, {file.begin(), file.end() - 20}).code, DecodeCode::truncated);
  // The first command becomes the end of the picture.
  file[14 + 40 + 1024] = 0;
  file[14 + 40 + 1025] = 1;
  EXPECT_EQ(decode_golden(decoder, file).code, DecodeCode::corrupt);
}

TEST(Codec, FlippedBitsNeverCrash) {
  if (!STOKER_HAS_CODECS) GTEST_SKIP() << "built without libwebp";
  std::mt19937 random(6);
  ImageDecoder decoder({.exif = ExifPolicy::apply, .max_pixels = 1'000'000});
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 2200; ++i) {
    Bytes file = golden_file(kFiles[i % std::size(kFiles)]);
    for (int flips = i % 4; flips >= 0; --flips) {
      const size_t end = i % 2 == 0 ? std::min<size_t>(file.size(), 200) : file.size();
      file[random() % end] ^= static_cast<uint8_t>(1u << random() % 8);
    }
    decode_golden(decoder, file);
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_TRUE(decode_golden(decoder, golden_file("images/rgb.png")).ok());
}

}  // namespace
}  // namespace stoker
