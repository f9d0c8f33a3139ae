// PGM and PPM: what a header may be, and broken files. (tests/python/test_image.py compares the
// pixels with Pillow's.)
#include <gtest/gtest.h>

#include <string>

#include "decode/image_decoder.h"
#include "tests/decode/pixels.h"

namespace stoker {
namespace {

std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

// Returns the pixels of the whole file; `status` says whether they are good.
std::vector<uint8_t> decode(const std::string& text, DecodeStatus& status, Box crop = {}) {
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
  decode(text, status);
  return status;
}

TEST(Pnm, PixelsAreReadWhereTheyLie) {
  DecodeStatus status;
  const std::string rgb = "P6\n2 2\n255\nabcdefghijkl";
  EXPECT_EQ(decode(rgb, status), bytes_of("abcdefghijkl"));
  EXPECT_TRUE(status.ok()) << status.message;
  EXPECT_EQ(decode(rgb, status, {1, 0, 1, 2}), bytes_of("defjkl"));
  EXPECT_EQ(decode(rgb, status, {0, 1, 2, 1}), bytes_of("ghijkl"));
  EXPECT_EQ(decode("P5\n3 2\n255\nabcdef", status), bytes_of("aaabbbcccdddeeefff"));
  EXPECT_EQ(decode("P5\n3 2\n255\nabcdef", status, {1, 1, 2, 1}), bytes_of("eeefff"));
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
  EXPECT_EQ(decode(text, status), expected);
}

TEST(Pnm, HeadersAsPillowReadsThem) {
  DecodeStatus status;
  for (const char* header :
       {"P6 1 1 255 ", "P6\t1\n\n1\r255\v", "P6#a\n1 1 255\n", "P6\n# a 7 8\n1 # b\r1 255\n",
        "P6 0001 1 2#a\n55\n", "P6 # \n1 1 255 "}) {
    EXPECT_EQ(decode(std::string(header).append("abc"), status), bytes_of("abc")) << header;
  }
  // One blank alone ends the header: more of them are pixels. What follows the pixels is left out.
  EXPECT_EQ(decode("P6 1 1 255 \n c", status), bytes_of("\n c"));
  EXPECT_EQ(decode("P6 1 1 255 abcdef", status), bytes_of("abc"));
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
       {"P3 1 1 255 1 2 3", "P4 8 1 a", "P6 1 1 31 abc", "P6 1 1 65535 abcdef"}) {
    EXPECT_EQ(status_of(text).code, DecodeCode::unsupported) << text;
  }
  for (const char* text : {"P6", "P7 1 1 255 abc", "P61 1 255 abc", "PX 1 1"}) {
    EXPECT_EQ(status_of(text).code, DecodeCode::not_an_image) << text;
  }
  EXPECT_EQ(status_of("P6 20000 20000 255 abc").code, DecodeCode::too_large);
}

}  // namespace
}  // namespace stoker
