// PBM, PGM and PPM: what a header may be, values and text, and broken files. (golden_test.cc and
// tests/python/test_image.py compare the pixels with Pillow's.)
#include <gtest/gtest.h>

#include <string>

#include "decode/image_decoder.h"
#include "tests/decode/pixels.h"

namespace stoker {
namespace {

std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

// Returns the pixels of the whole file; `status` says whether they are good.
std::vector<uint8_t> decode_pnm(const std::string& text, DecodeStatus& status, Box crop = {}) {
  ImageDecoder decoder;
  const std::vector<uint8_t> file = bytes_of(text);
  ImageInfo info;
  status = decoder.info(file, info);
  if (!status.ok()) return {};
  EXPECT_EQ(info.format, ImageFormat::pnm);
  if (crop.width == 0) crop = {0, 0, info.size.width, info.size.height};
  Pixels out({crop.width, crop.height});
  status = decoder.decode(file, {crop, {crop.width, crop.height}, {0, 0, crop.width, crop.height}},
                          out.view());
  const MutableImageView view = out.view();
  std::vector<uint8_t> pixels;
  for (int y = 0; y < view.height; ++y) {
    const uint8_t* row = view.data + y * view.stride_bytes;
    pixels.insert(pixels.end(), row, row + ptrdiff_t{3} * view.width);
  }
  return pixels;
}

DecodeStatus status_of(const std::string& text) {
  DecodeStatus status;
  decode_pnm(text, status);
  return status;
}

TEST(Pnm, PixelsAreReadWhereTheyLie) {
  DecodeStatus status;
  const std::string rgb = "P6\n2 2\n255\nabcdefghijkl";
  EXPECT_EQ(decode_pnm(rgb, status), bytes_of("abcdefghijkl"));
  EXPECT_TRUE(status.ok()) << status.message;
  EXPECT_EQ(decode_pnm(rgb, status, {1, 0, 1, 2}), bytes_of("defjkl"));
  EXPECT_EQ(decode_pnm(rgb, status, {0, 1, 2, 1}), bytes_of("ghijkl"));
  EXPECT_EQ(decode_pnm("P5\n3 2\n255\nabcdef", status), bytes_of("aaabbbcccdddeeefff"));
  EXPECT_EQ(decode_pnm("P5\n3 2\n255\nabcdef", status, {1, 1, 2, 1}), bytes_of("eeefff"));
}

// More rows than the decoder takes at once.
TEST(Pnm, TallPictures) {
  std::string text = "P5\n1 100\n255\n";
  std::vector<uint8_t> expected;
  for (int y = 0; y < 100; ++y) {
    text.push_back(static_cast<char>(y));
    expected.insert(expected.end(), 3, static_cast<uint8_t>(y));
  }
  DecodeStatus status;
  EXPECT_EQ(decode_pnm(text, status), expected);
}

TEST(Pnm, HeadersAsPillowReadsThem) {
  DecodeStatus status;
  for (const char* header :
       {"P6 1 1 255 ", "P6\t1\n\n1\r255\v", "P6#a\n1 1 255\n", "P6\n# a 7 8\n1 # b\r1 255\n",
        "P6 0001 1 2#a\n55\n", "P6 # \n1 1 255 "}) {
    EXPECT_EQ(decode_pnm(std::string(header).append("abc"), status), bytes_of("abc")) << header;
  }
  // One blank alone ends the header: more of them are pixels. What follows the pixels is left out.
  EXPECT_EQ(decode_pnm("P6 1 1 255 \n c", status), bytes_of("\n c"));
  EXPECT_EQ(decode_pnm("P6 1 1 255 abcdef", status), bytes_of("abc"));
}

std::vector<uint8_t> grays(std::initializer_list<uint8_t> values) {
  std::vector<uint8_t> rgb;
  for (const uint8_t value : values) rgb.insert(rgb.end(), 3, value);
  return rgb;
}

TEST(Pnm, BitsAreBlackWhereTheyAreSet) {
  DecodeStatus status;
  const std::string binary = "P4 9 2\n\x80\x80\x01\x7f";  // what is behind the ninth is left out
  const std::vector<uint8_t> nine = grays({0, 255, 255, 255, 255, 255, 255, 255, 0});
  EXPECT_EQ(decode_pnm(binary, status, {0, 0, 9, 1}), nine);
  EXPECT_EQ(decode_pnm(binary, status, {6, 1, 3, 1}), grays({255, 0, 255}));
  EXPECT_EQ(decode_pnm("P4 8 2\n\xff\x7f", status, {0, 1, 2, 1}), grays({255, 0}));
  // Between the digits of a text nothing must stand, and anything blank may.
  EXPECT_EQ(decode_pnm("P1 3 2\n10 0#0 0\n\n\t1 1 0", status), grays({0, 255, 255, 0, 0, 255}));
  EXPECT_TRUE(status.ok()) << status.message;
  EXPECT_EQ(decode_pnm("P1 3 2\n100110", status, {1, 1, 2, 1}), grays({0, 255}));
}

TEST(Pnm, ValuesAreScaledAsPillowScalesThem) {
  DecodeStatus status;
  // Halves are rounded to even, and 3 / 10 * 255 is less than a half in double precision.
  EXPECT_EQ(decode_pnm("P5 4 1 10 \x01\x03\x0a\x0b", status), grays({26, 76, 255, 255}));
  EXPECT_EQ(decode_pnm("P2 3 1 10 1 3 10", status), grays({26, 76, 255}));
  // Gray values of 16 bits are clipped, not divided.
  const std::string three = std::string("\0\x01", 2) + std::string("\0\xff", 2) + "\x01\x01";
  EXPECT_EQ(decode_pnm("P5 3 1 65535 " + three, status), grays({1, 255, 255}));
  EXPECT_EQ(decode_pnm("P5 3 1 1000 " + three, status), grays({66, 255, 255}));
  EXPECT_EQ(decode_pnm("P2 3 1 1000 1 3 4", status), grays({66, 197, 255}));
  // RGB of 16 bits is scaled to 8.
  EXPECT_EQ(decode_pnm("P6 1 1 65535 " + three, status), bytes_of(std::string("\0\x01\x01", 3)));
  EXPECT_EQ(decode_pnm("P3 1 1 514 1 257 514", status), bytes_of(std::string("\0\x80\xff", 3)));
}

TEST(Pnm, TextIsReadToTheCropsLastRow) {
  DecodeStatus status;
  const std::string text = "P3\n2 2 255\n1 2 3 4 5#\n# 7\n 6\n7 8 9 10 11 12";
  EXPECT_EQ(decode_pnm(text, status), bytes_of("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c"));
  EXPECT_TRUE(status.ok()) << status.message;
  EXPECT_EQ(decode_pnm(text, status, {1, 1, 1, 1}), bytes_of("\x0a\x0b\x0c"));
  // Bytes after the crop are not looked at; those before it are.
  EXPECT_EQ(decode_pnm("P2 1 3 255 1 2 x ", status, {0, 0, 1, 2}), grays({1, 2}));
  EXPECT_TRUE(status.ok()) << status.message;
  decode_pnm("P2 1 3 255 1 x 2 ", status, {0, 2, 1, 1});
  EXPECT_EQ(status.code, DecodeCode::corrupt);
}

TEST(Pnm, BadText) {
  for (const char* text : {"P2 2 1 9 1 10", "P2 2 1 9 1 -1", "P2 2 1 9 +1 1",
                           "P2 1 1 9 00000000001", "P1 2 1 12", "P1 2 1 1x1", "P3 1 1 9 1 2 3x"}) {
    EXPECT_EQ(status_of(text).code, DecodeCode::corrupt) << text;
  }
  for (const char* text : {"P2 2 1 9 1", "P2 2 1 255 111 ", "P1 2 1 1", "P1 2 1 1 # 1", "P1 9 ",
                           "P3 1 1 9 1 2", "P3 1 1 9 1 2 # 3", "P4 9 1 a"}) {
    EXPECT_EQ(status_of(text).code, DecodeCode::truncated) << text;
  }
  // Too few bytes for so many numbers: nothing is read.
  EXPECT_EQ(status_of("P3 300 300 255 1 2 3").code, DecodeCode::truncated);
}

TEST(Pnm, BadFiles) {
  for (const char* text :
       {"P6 0 1 255 abc", "P6 1 -1 255 abc", "P6 1 1x 255 abc", "P6 99999999999 1 255 abc",
        "P6 4294967297 1 255 abc", "P6 1 1 0 abc", "P6 1 1 65536 abcdef"}) {
    EXPECT_EQ(status_of(text).code, DecodeCode::corrupt) << text;
  }
  for (const char* text : {"P6 ", "P6 1", "P6 1 1 255", "P6 1 1 255 ", "P6 1 1 255 ab",
                           "P5 2 2 255 abc", "P6 1 1 # never ends"}) {
    EXPECT_EQ(status_of(text).code, DecodeCode::truncated) << text;
  }
  for (const char* text :
       {"P7\nWIDTH 1\nHEIGHT 1", "Pf\n1 1\n-1.0\nabcd", "PF 1 1 1 abcdabcdabcd"}) {
    EXPECT_EQ(status_of(text).code, DecodeCode::unsupported) << text;
    EXPECT_NE(status_of(text).message.find("PAM and PFM are not read"), std::string::npos);
  }
  for (const char* text : {"P6", "P61 1 255 abc", "PX 1 1", "P0 1 1 255 abcd"}) {
    EXPECT_EQ(status_of(text).code, DecodeCode::not_an_image) << text;
  }
  EXPECT_EQ(status_of("P6 20000 20000 255 abc").code, DecodeCode::too_large);
}

}  // namespace
}  // namespace stoker
