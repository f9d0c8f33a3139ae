// JPEG 2000: what is read and refused before OpenJPEG sees a file.
// (codec_plugin_test.cc has the plugin, golden_test.cc Pillow's pixels.)
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "decode/codec/file_headers.h"
#include "decode/image_decoder.h"
#include "tests/decode/pixels.h"

namespace stoker {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes variant(const std::string& name) {
  return read_file(std::string(STOKER_GOLDEN_DIR) + "/decode/variants/" + name);
}

DecodeStatus decode_jpeg2000(const Bytes& file, int64_t max_pixels = 1'000'000) {
  ImageDecoder decoder({.max_pixels = max_pixels});
  Pixels out({23, 17});
  return decoder.decode(file, plain_crop({0, 0, 23, 17}), out.view());
}

size_t find(const Bytes& file, std::initializer_list<uint8_t> marker) {
  const auto at = std::search(file.begin(), file.end(), marker.begin(), marker.end());
  return static_cast<size_t>(at - file.begin());
}

// Any box may have a length of 64 bits.
TEST(Jpeg2000, BoxesMayHaveLongLengths) {
  Bytes file = variant("rgb_reversible.jp2");
  const auto codestream = static_cast<ptrdiff_t>(find(file, {'j', 'p', '2', 'c'})) - 4;
  const Bytes box{0, 0, 0, 1, 'x', 'm', 'l', ' ', 0, 0, 0, 0, 0, 0, 0, 18, '<', '>'};
  file.insert(file.begin() + codestream, box.begin(), box.end());
  ImageInfo info;
  EXPECT_TRUE(ImageDecoder().info(file, info).ok());
  file[static_cast<size_t>(codestream) + 15] = 15;  // less than the box's own head
  EXPECT_FALSE(ImageDecoder().info(file, info).ok());
}

// A few bytes that promise many pixels, tiles, precincts or layers.
TEST(Jpeg2000, Bombs) {
  const Bytes good = variant("rgb_bare.jp2");
  const size_t size = find(good, {0xff, 0x51}), coding = find(good, {0xff, 0x52});
  Size found;
  ASSERT_TRUE(read_jpeg2000_header(good, found).ok());
  const auto changed = [&](size_t at, std::initializer_list<uint8_t> bytes) {
    Bytes file = good;
    std::copy(bytes.begin(), bytes.end(), file.begin() + static_cast<ptrdiff_t>(at));
    return file;
  };
  Bytes wide = good;
  for (const size_t at : {size + 6, size + 10, size + 22, size + 26}) wide[at + 2] = 0xff;
  EXPECT_EQ(decode_jpeg2000(wide).code, DecodeCode::too_large);
  for (const size_t at : {size + 6, size + 10, size + 22, size + 26}) wide[at] = 0x7f;
  EXPECT_EQ(decode_jpeg2000(wide, INT64_MAX).code, DecodeCode::too_large);  // nothing overflows
  // Half of the limit, because OpenJPEG takes twice the memory.
  EXPECT_EQ(decode_jpeg2000(good, 2 * 23 * 17 - 1).code, DecodeCode::too_large);
  EXPECT_TRUE(decode_jpeg2000(good, 2 * 23 * 17).ok());
  for (const Bytes& file : {
           changed(size + 22, {0, 0, 0, 1, 0, 0, 0, 1}),  // tiles of one pixel
           changed(coding + 6, {0xff, 0xff}),             // layers
           changed(coding + 10, {0, 0}),                  // code blocks of four by four
           changed(size + 14, {0, 0, 0, 1}),              // an offset
           changed(size + 38, {0, 5}),                    // channels
           changed(size + 40, {15}),                      // bits
           changed(size + 41, {2}),                       // fewer pixels of one channel
       }) {
    EXPECT_EQ(decode_jpeg2000(file).code, DecodeCode::unsupported);
  }
}

}  // namespace
}  // namespace stoker
