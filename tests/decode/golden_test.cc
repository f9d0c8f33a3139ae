// Pillow's and torchvision's pixels, by hash: see tests/golden/decode/make_golden.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <sstream>
#include <string>

#include "decode/image_decoder.h"
#include "decode/pillow_resize.h"
#include "decode/pixel/colour.h"
#include "tests/decode/pixels.h"
#include "tests/decode/random_spec.h"
#include "tests/support/pillow_reference.h"

namespace stoker {
namespace {

const std::string kFolder = std::string(STOKER_GOLDEN_DIR) + "/decode/";

template <class Check>
int for_each_line(const std::string& file, const Check& check) {
  std::ifstream lines(kFolder + file);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    SCOPED_TRACE(line);
    std::istringstream in(line);
    check(in);
  }
  return count;
}

bool is_decoded(const std::string& name) {
  if (name.ends_with(".jp2")) return STOKER_HAS_OPENJPEG;
  return STOKER_HAS_CODECS || !(name.ends_with(".webp") || name.ends_with(".tif"));
}

// How many files have their pixels, and how many are refused as they should be.
struct GoldenCount {
  int compared = 0, refused = 0;

  void check(const DecodeStatus& status, const Pixels& out, const std::string& hash) {
    if (hash == "unsupported") {
      EXPECT_EQ(status.code, DecodeCode::unsupported) << status.message;
      ++refused;
      return;
    }
    ASSERT_TRUE(status.ok()) << to_string(status.code) << ": " << status.message;
    EXPECT_EQ(fnv1a(out.packed()), hash);
    EXPECT_TRUE(out.gaps_intact());
    ++compared;
  }
};

void expect_part_of(const Pixels& whole, Box crop, const Pixels& part) {
  for (int y = 0; y < crop.height; ++y) {
    const uint8_t* expected = whole.pixel(crop.x, crop.y + y);
    ASSERT_TRUE(std::equal(expected, expected + 3 * crop.width, part.pixel(0, y)))
        << crop.width << "x" << crop.height << " at " << crop.x << "," << crop.y << " row " << y;
  }
}

// The pixels of one version of Pillow, and the policy that promises them.
struct Pillow {
  PixelPolicy policy;
  std::string files;  // suffix of the golden files
};

class GoldenOfPillow : public ::testing::TestWithParam<Pillow> {};

INSTANTIATE_TEST_SUITE_P(Versions, GoldenOfPillow,
                         ::testing::Values(Pillow{PixelPolicy::exact_pillow12, ".txt"},
                                           Pillow{PixelPolicy::exact, "_pillow13.txt"}),
                         [](const auto& pillow) {
                           return pillow.param.policy == PixelPolicy::exact ? "13" : "12";
                         });

TEST_P(GoldenOfPillow, FilesOfEveryKindHaveItsPixels) {
  const PixelPolicy policy = GetParam().policy;
  ImageDecoder plain({.pixels = policy});
  ImageDecoder turning({.pixels = policy, .exif = ExifPolicy::apply});
  GoldenCount count;
  for_each_line("images" + GetParam().files, [&](std::istringstream& in) {
    std::string name, hash;
    int exif = 0;
    in >> name;
    const CropSpec spec = read_spec(in);
    in >> exif >> hash;
    if (!is_decoded(name)) return;
    Pixels out({spec.window.width, spec.window.height}, 7);
    const DecodeStatus status =
        (exif ? turning : plain).decode(read_file(kFolder + "images/" + name), spec, out.view());
    count.check(status, out, hash);
  });
  EXPECT_GE(count.compared, STOKER_HAS_CODECS ? 310 : 160);
  EXPECT_EQ(count.refused, STOKER_HAS_CODECS && policy == PixelPolicy::exact_pillow12 ? 1 : 0);
}

// Rarer kinds, decoded as a whole: see tests/golden/decode/make_variants.py.
TEST(Golden, VariantsHavePillowsPixelsAndPartsThoseOfTheWhole) {
  ImageDecoder decoder;
  std::mt19937 random(1);
  GoldenCount count;
  for_each_line("variants.txt", [&](std::istringstream& in) {
    std::string name, hash;
    in >> name >> hash;
    if (!is_decoded(name)) return;
    const std::vector<uint8_t> file = read_file(kFolder + "variants/" + name);
    Pixels whole({23, 17}, 7);
    const DecodeStatus status = decoder.decode(file, plain_crop({0, 0, 23, 17}), whole.view());
    count.check(status, whole, hash);
    // Readers decode no more than a crop needs; what they give of it does not depend on the crop.
    for (int i = 0; i < 20 && status.ok(); ++i) {
      const Box crop = random_box({23, 17}, random);
      Pixels part({crop.width, crop.height}, 7);
      ASSERT_TRUE(decoder.decode(file, plain_crop(crop), part.view()).ok());
      expect_part_of(whole, crop, part);
    }
  });
  EXPECT_EQ(count.compared, (STOKER_HAS_CODECS ? 355 : 138) + (STOKER_HAS_OPENJPEG ? 13 : 0));
  EXPECT_EQ(count.refused, (STOKER_HAS_CODECS ? 7 : 0) + (STOKER_HAS_OPENJPEG ? 1 : 0));
}

// AVIF files of every kind: see tests/golden/decode/make_avifs.py.
TEST(Golden, AvifsHavePillowsPixels) {
  if (!STOKER_HAS_AVIF) GTEST_SKIP() << "this build has no libavif";
  ImageDecoder decoder;
  std::mt19937 random(1);
  int compared = 0, refused = 0;
  for_each_line("avifs.txt", [&](std::istringstream& in) {
    std::string name, hash;
    Size size;
    int orientation = 0;
    in >> name >> size.width >> size.height >> orientation >> hash;
    const std::vector<uint8_t> file = read_file(kFolder + "avifs/" + name);
    if (hash == "unsupported") {
      Pixels out({23, 17});
      EXPECT_EQ(decoder.decode(file, plain_crop({0, 0, 23, 17}), out.view()).code,
                DecodeCode::unsupported);
      ++refused;
      return;
    }
    ImageInfo info;
    DecodeStatus status = decoder.info(file, info);
    ASSERT_TRUE(status.ok()) << to_string(status.code) << ": " << status.message;
    EXPECT_EQ(info.format, ImageFormat::avif);
    ASSERT_EQ(info.size, size);
    EXPECT_EQ(info.orientation, orientation);
    Pixels out(size, 7);
    status = decoder.decode(file, plain_crop({0, 0, size.width, size.height}), out.view());
    ASSERT_TRUE(status.ok()) << to_string(status.code) << ": " << status.message;
    EXPECT_EQ(fnv1a(out.packed()), hash);
    EXPECT_TRUE(out.gaps_intact());
    const Box crop = random_box(size, random);
    Pixels part({crop.width, crop.height}, 7);
    ASSERT_TRUE(decoder.decode(file, plain_crop(crop), part.view()).ok());
    expect_part_of(out, crop, part);
    ++compared;
  });
  EXPECT_EQ(compared, 143);
  EXPECT_EQ(refused, 5);
}

// Compares the resizes of a golden file; returns their number.
int compare_resizes(const std::string& file, PixelPolicy policy) {
  PillowResize resize(policy);
  return for_each_line(file, [&](std::istringstream& in) {
    Size size;
    uint32_t seed = 0;
    in >> size.width >> size.height >> seed;
    const CropSpec spec = read_spec(in);
    std::string hash;
    in >> hash;
    const Pixels source = noise(size, seed, 5);
    const ImageView crop = {source.pixel(spec.crop.x, spec.crop.y), spec.crop.width,
                            spec.crop.height, source.view().stride_bytes};
    Pixels fast({spec.window.width, spec.window.height}, 3);
    resize.run(crop, spec, fast.view());
    EXPECT_EQ(fnv1a(fast.packed()), hash);
    EXPECT_TRUE(fast.gaps_intact());
    Pixels plain({spec.window.width, spec.window.height});
    pillow_resize_reference(crop, spec, plain.view(), policy);
    EXPECT_EQ(fnv1a(plain.packed()), hash);
  });
}

TEST_P(GoldenOfPillow, ResizeIsItsOwn) {
  EXPECT_GE(compare_resizes("resize" + GetParam().files, GetParam().policy), 120);
}

// See tests/golden/pixel/make_golden_geometry.py.
TEST_P(GoldenOfPillow, FiltersAreItsOwn) {
  EXPECT_EQ(compare_resizes("../pixel/filters" + GetParam().files, GetParam().policy), 180);
}

TEST(Golden, ColourOperationsAreTorchvisions) {
  constexpr void (*kOperations[])(MutableImageView, double) = {adjust_brightness, adjust_contrast,
                                                               adjust_saturation, adjust_hue};
  const int count = for_each_line("colour.txt", [&](std::istringstream& in) {
    int operation = 0;
    Size size;
    uint32_t seed = 0;
    double factor = 0;
    std::string hash;
    in >> operation >> size.width >> size.height >> seed >> factor >> hash;
    Pixels image = noise(size, seed, 4);
    kOperations[operation](image.view(), factor);
    EXPECT_EQ(fnv1a(image.packed()), hash);
    EXPECT_TRUE(image.gaps_intact());
  });
  EXPECT_EQ(count, 160);
}

}  // namespace
}  // namespace stoker
