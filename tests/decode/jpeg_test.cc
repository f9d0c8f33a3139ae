// Region decoding equals cropping a full decode, for every kind of JPEG.
#include <gtest/gtest.h>

#include <random>

#include "decode/image_decoder.h"
#include "decode/jpeg/libjpeg_decoder.h"
#include "tests/decode/jpeg_maker.h"
#include "tests/support/pillow_reference.h"

namespace stoker {
namespace {

constexpr int64_t kJpegMaxPixels = 1'000'000;

std::vector<uint8_t> crop_of(const Pixels& image, Box box) {
  std::vector<uint8_t> out;
  for (int y = box.y; y < box.y + box.height; ++y) {
    const uint8_t* row = image.pixel(box.x, y);
    out.insert(out.end(), row, row + 3 * box.width);
  }
  return out;
}

Box draw_box(std::mt19937& random, Size size) {
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  const int most = draw(0, 2) == 0 ? 3 : 1000;  // often a sliver
  Box box;
  box.width = draw(1, std::min(size.width, most));
  box.height = draw(1, std::min(size.height, most));
  box.x = draw(0, size.width - box.width);
  box.y = draw(0, size.height - box.height);
  return box;
}

std::vector<JpegKind> all_kinds() {
  std::vector<JpegKind> kinds;
  constexpr int kSamplings[][2] = {{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}, {4, 2}, {1, 4}};
  for (const JpegColours colours : {JpegColours::ycc, JpegColours::rgb, JpegColours::ycck}) {
    for (const auto& [x, y] : kSamplings) {
      if (colours == JpegColours::ycck && x * y > 4) continue;  // more than ten blocks in an MCU
      for (const bool progressive : {false, true}) {
        JpegKind kind{
            .colours = colours, .sampling_x = x, .sampling_y = y, .progressive = progressive};
        kinds.push_back(kind);
      }
    }
  }
  for (const bool progressive : {false, true}) {
    kinds.push_back({.colours = JpegColours::gray, .progressive = progressive});
    kinds.push_back({.colours = JpegColours::gray,
                     .sampling_x = 2,
                     .sampling_y = 2,
                     .progressive = progressive});
    kinds.push_back({.colours = JpegColours::cmyk, .progressive = progressive});
    kinds.push_back(
        {.sampling_x = 2, .sampling_y = 2, .progressive = progressive, .arithmetic = true});
    kinds.push_back(
        {.sampling_x = 2, .sampling_y = 2, .progressive = progressive, .restart_rows = 1});
  }
  kinds.push_back({.sampling_x = 2, .sampling_y = 2, .interleaved = false});
  kinds.push_back({.colours = JpegColours::cmyk, .interleaved = false});
  return kinds;
}

TEST(JpegDecoder, RegionsEqualCropsOfTheWhole) {
  std::mt19937 random(11);
  JpegDecoder decoder(kJpegMaxPixels);
  int regions = 0;
  for (const JpegKind& kind : all_kinds()) {
    for (const Size size : {Size{1, 1}, {3, 50}, {16, 8}, {33, 17}, {70, 95}, {213, 120}}) {
      const std::vector<uint8_t> file = make_jpeg(size, kind, 3 + size.width);
      const Pixels whole = decode_whole_jpeg(file);
      for (int i = 0; i < 25; ++i, ++regions) {
        const Box box = i == 0 ? Box{0, 0, size.width, size.height} : draw_box(random, size);
        Pixels part({box.width, box.height}, i % 4);
        const DecodeStatus status = decoder.decode(file, box, part.view());
        ASSERT_TRUE(status.ok()) << describe(kind) << ": " << status.message;
        ASSERT_EQ(part.packed(), crop_of(whole, box))
            << describe(kind) << " " << size.width << "x" << size.height << " region " << box.width
            << "x" << box.height << " at " << box.x << "," << box.y;
        ASSERT_TRUE(part.gaps_intact());
      }
    }
  }
  EXPECT_GT(regions, 7000);
}

// libjpeg-turbo's guess of the scans that are missing depends on its version.
TEST(JpegDecoder, FilesThatLackScansAreRefused) {
  ImageDecoder decoder;
  Pixels out({40, 40});
  for (const int scans : {1, 3, 5, 7, 9, 0}) {
    for (const int sampling : {1, 2}) {
      const JpegKind kind{
          .sampling_x = sampling, .sampling_y = sampling, .progressive = true, .scans_kept = scans};
      const DecodeStatus status =
          decoder.decode(make_jpeg({40, 40}, kind), plain_crop({0, 0, 40, 40}), out.view());
      EXPECT_EQ(status.code, scans == 0 ? DecodeCode::ok : DecodeCode::truncated) << scans;
    }
  }
}

// The whole ImageDecoder, streaming, against full decode + crop + plain resize.
TEST(ImageDecoder, CropResizeWindowAndFlipEqualTheSlowWay) {
  std::mt19937 random(12);
  ImageDecoder decoder;
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int i = 0; i < 300; ++i) {
    const Size size = {draw(1, 160), draw(1, 160)};
    const int sampling = draw(1, 2);
    const std::vector<uint8_t> file =
        make_jpeg(size, {.sampling_x = sampling, .sampling_y = sampling, .progressive = i % 5 == 0},
                  static_cast<uint32_t>(i));
    CropSpec spec;
    spec.crop = draw_box(random, size);
    spec.resized = {draw(1, 90), draw(1, 90)};
    spec.window = draw_box(random, spec.resized);
    spec.flip = i % 2 == 0;
    spec.filter = static_cast<Filter>(i % kFilterCount);
    Pixels fast({spec.window.width, spec.window.height}, 2);
    const DecodeStatus status = decoder.decode(file, spec, fast.view());
    ASSERT_TRUE(status.ok()) << status.message;
    const Pixels whole = decode_whole_jpeg(file);
    Pixels slow({spec.window.width, spec.window.height});
    pillow_resize_reference({whole.pixel(spec.crop.x, spec.crop.y), spec.crop.width,
                             spec.crop.height, whole.view().stride_bytes},
                            spec, slow.view());
    ASSERT_EQ(fast.packed(), slow.packed()) << i;
  }
}

TEST(ImageDecoder, InfoReadsSizeAndFormat) {
  ImageDecoder decoder;
  ImageInfo info;
  ASSERT_TRUE(decoder.info(make_jpeg({123, 45}, {}), info).ok());
  EXPECT_EQ(info.format, ImageFormat::jpeg);
  EXPECT_EQ(info.size, (Size{123, 45}));
  EXPECT_EQ(info.orientation, 1);
}

}  // namespace
}  // namespace stoker
