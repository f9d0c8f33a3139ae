// EXIF orientation: all eight, both byte orders, any crop; malicious blocks give no orientation.
// (golden_test.cc compares with Pillow's exif_transpose.)
#include "decode/orientation.h"

#include <gtest/gtest.h>

#include <random>

#include "decode/image_decoder.h"
#include "tests/decode/jpeg_maker.h"

namespace stoker {
namespace {

// The definition, pixel by pixel: finds the stored pixel that is shown at (x, y).
void stored_location(int orientation, Size stored, int x, int y, int& stored_x, int& stored_y) {
  const int w = stored.width - 1, h = stored.height - 1;
  switch (orientation) {
    case 1:
      stored_x = x, stored_y = y;
      break;
    case 2:
      stored_x = w - x, stored_y = y;
      break;
    case 3:
      stored_x = w - x, stored_y = h - y;
      break;
    case 4:
      stored_x = x, stored_y = h - y;
      break;
    case 5:
      stored_x = y, stored_y = x;
      break;
    case 6:
      stored_x = y, stored_y = h - x;
      break;
    case 7:
      stored_x = w - y, stored_y = h - x;
      break;
    default:
      stored_x = w - y, stored_y = x;
      break;
  }
}

Pixels turned(const Pixels& stored, int orientation) {
  Pixels out(oriented_size(stored.size(), orientation));
  for (int y = 0; y < out.size().height; ++y) {
    for (int x = 0; x < out.size().width; ++x) {
      int from_x = 0, from_y = 0;
      stored_location(orientation, stored.size(), x, y, from_x, from_y);
      std::copy_n(stored.pixel(from_x, from_y), 3, out.pixel(x, y));
    }
  }
  return out;
}

TEST(Orientation, CropsAreInOrientedCoordinates) {
  std::mt19937 random(2);
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  ImageDecoder applying({.exif = ExifPolicy::apply});
  ImageDecoder ignoring;
  const Size stored = {58, 33};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const bool big_endian = orientation % 2 == 0;
    const std::vector<uint8_t> file = make_jpeg(stored, {.sampling_x = 2,
                                                         .sampling_y = 2,
                                                         .exif_orientation = orientation,
                                                         .exif_big_endian = big_endian});
    const Pixels whole = decode_whole_jpeg(file);
    const Pixels expected = turned(whole, orientation);
    ImageInfo info;
    ASSERT_TRUE(applying.info(file, info).ok());
    EXPECT_EQ(info.orientation, orientation);
    EXPECT_EQ(info.size, expected.size());
    ASSERT_TRUE(ignoring.info(file, info).ok());
    EXPECT_EQ(info.size, stored);
    for (int i = 0; i < 20; ++i) {
      Box box;
      box.width = draw(1, expected.size().width);
      box.height = draw(1, expected.size().height);
      box.x = draw(0, expected.size().width - box.width);
      box.y = draw(0, expected.size().height - box.height);
      Pixels out({box.width, box.height});
      ASSERT_TRUE(applying.decode(file, plain_crop(box), out.view()).ok());
      for (int y = 0; y < box.height; ++y) {
        ASSERT_TRUE(std::equal(out.pixel(0, y), out.pixel(0, y) + 3 * box.width,
                               expected.pixel(box.x, box.y + y)))
            << orientation << " row " << y;
      }
    }
    Pixels plain(stored);
    ASSERT_TRUE(
        ignoring.decode(file, plain_crop({0, 0, stored.width, stored.height}), plain.view()).ok());
    EXPECT_EQ(plain.packed(), whole.packed());
  }
}

std::vector<uint8_t> block(int orientation) {
  return {'I',
          'I',
          42,
          0,
          8,
          0,
          0,
          0,
          1,
          0,
          0x12,
          0x01,
          3,
          0,
          1,
          0,
          0,
          0,
          static_cast<uint8_t>(orientation),
          0,
          0,
          0,
          0,
          0,
          0,
          0};
}

TEST(Orientation, NonsenseIsNoOrientation) {
  EXPECT_EQ(exif_orientation(block(6)), 6);
  EXPECT_EQ(exif_orientation(block(0)), 1);
  EXPECT_EQ(exif_orientation(block(9)), 1);
  EXPECT_EQ(exif_orientation({}), 1);
  std::vector<uint8_t> bytes = block(6);
  bytes[8] = 0xff;  // more entries than there are
  bytes[9] = 0xff;
  EXPECT_EQ(exif_orientation(bytes), 1);
  bytes = block(6);
  bytes[7] = 0xff;  // a directory outside
  EXPECT_EQ(exif_orientation(bytes), 1);
  bytes = block(6);
  bytes[14] = 2;  // two values, of which Pillow takes the first
  EXPECT_EQ(exif_orientation(bytes), 6);
  bytes[14] = 0;
  EXPECT_EQ(exif_orientation(bytes), 1);
  bytes[14] = 3;  // three do not lie in the entry, which then has their place
  EXPECT_EQ(exif_orientation(bytes), 1);
  bytes[18] = static_cast<uint8_t>(bytes.size());
  bytes.insert(bytes.end(), {3, 0, 1, 0, 1, 0});
  EXPECT_EQ(exif_orientation(bytes), 3);
}

TEST(Orientation, HostileBlocksAreSafe) {
  std::mt19937 random(8);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<uint8_t> bytes = block(6);
    for (int flips = i % 4; flips >= 0; --flips) {
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    }
    bytes.resize(random() % (bytes.size() + 1));
    const int orientation = exif_orientation(bytes);
    ASSERT_TRUE(orientation >= 1 && orientation <= 8);
    std::vector<uint8_t> jpeg = {0xFF, 0xD8, 0xFF, 0xE1, 0, static_cast<uint8_t>(random() % 60),
                                 'E',  'x',  'i',  'f',  0, 0};
    jpeg.insert(jpeg.end(), bytes.begin(), bytes.end());
    ASSERT_GE(jpeg_orientation(jpeg), 1);
  }
}

}  // namespace
}  // namespace stoker
