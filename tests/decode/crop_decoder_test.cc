#include "decode/crop_decoder.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "decode/image_decoder.h"
#include "tests/decode/jpeg_maker.h"
#include "tests/decode/jpeg_recoder.h"
#include "tests/decode/random_spec.h"

namespace stoker {
namespace {

constexpr int64_t kCropMaxPixels = 1 << 26;

struct Difference {
  double mean = 0;
  int most = 0;
};

Difference crop_difference(const Pixels& a, const Pixels& b) {
  const std::vector<uint8_t> x = a.packed(), y = b.packed();
  Difference d;
  for (size_t i = 0; i < x.size(); ++i) {
    const int one = std::abs(x[i] - y[i]);
    d.mean += one;
    d.most = std::max(d.most, one);
  }
  d.mean /= static_cast<double>(x.size());
  return d;
}

// Decodes on both paths and compares.
Difference compare(const std::vector<uint8_t>& file, const CropSpec& spec) {
  const Size size{spec.window.width, spec.window.height};
  Pixels fast(size, 7), exact(size);
  CropDecoder crop(kCropMaxPixels, PixelPolicy::fast);
  EXPECT_TRUE(crop.decode(file, spec, fast.view()));
  EXPECT_TRUE(fast.gaps_intact());
  ImageDecoder decoder({.pixels = PixelPolicy::exact_pillow12});
  const DecodeStatus status = decoder.decode(file, spec, exact.view());
  EXPECT_TRUE(status.ok()) << status.message;
  return crop_difference(fast, exact);
}

// The generated pictures have extreme colours: the exact path clips colours before the resize, and
// this one after it, so single pixels differ by more than rounding.
TEST(CropDecoder, IsCloseToTheExactPathForEverySampling) {
  std::mt19937 random(1);
  const int samplings[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1},
                              {4, 2}, {1, 3}, {2, 3}, {1, 4}};
  for (const auto& sampling : samplings) {
    double sum = 0, pixels = 0;
    for (int trial = 0; trial < 25; ++trial) {
      JpegKind kind{.quality = 60 + trial,
                    .sampling_x = sampling[0],
                    .sampling_y = sampling[1],
                    .restart_rows = trial % 3};
      const Size size{20 + static_cast<int>(random() % 260), 20 + static_cast<int>(random() % 200)};
      const CropSpec spec = random_spec(size, random);
      SCOPED_TRACE(describe(kind) + " trial " + std::to_string(trial));
      const Difference d = compare(make_jpeg(size, kind, static_cast<uint32_t>(trial)), spec);
      EXPECT_LE(d.most, 32);
      const double area = static_cast<double>(spec.window.width) * spec.window.height;
      sum += d.mean * area;
      pixels += area;
    }
    EXPECT_LE(sum / pixels, 0.4) << sampling[0] << "x" << sampling[1];
  }
}

TEST(CropDecoder, IsCloseToTheExactPathForGreyAndTinyImages) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 120; ++trial) {
    JpegKind kind;
    if (trial % 3 == 0) kind.colours = JpegColours::gray;
    kind.sampling_x = kind.sampling_y = 1 + trial % 2;
    const Size size{1 + static_cast<int>(random() % 20), 1 + static_cast<int>(random() % 20)};
    SCOPED_TRACE(describe(kind) + " trial " + std::to_string(trial));
    const Difference d =
        compare(make_jpeg(size, kind, static_cast<uint32_t>(trial)), random_spec(size, random));
    EXPECT_LE(d.mean, 1.5);
  }
}

TEST(CropDecoder, KeepsTheQualityLinesOnRealFiles) {
  const char* data = std::getenv("STOKER_DATA");
  if (data == nullptr) GTEST_SKIP() << "STOKER_DATA is not set";
  std::mt19937 random(3);
  CropDecoder crop(kCropMaxPixels, PixelPolicy::fast);
  ImageDecoder decoder({.pixels = PixelPolicy::exact_pillow12});
  Pixels fast({224, 224}), exact({224, 224});
  double sum = 0, worst = 0;
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data)) {
    ImageInfo info;
    if (!entry.is_regular_file() || count == 100) continue;
    const std::vector<uint8_t> file = read_file(entry.path());
    if (!decoder.info(file, info).ok() || std::min(info.size.width, info.size.height) < 100)
      continue;
    CropSpec spec = random_spec(info.size, random);
    spec.resized = {224, 224};
    spec.window = {0, 0, 224, 224};
    if (!crop.decode(file, spec, fast.view())) continue;
    ASSERT_TRUE(decoder.decode(file, spec, exact.view()).ok());
    const double mean = crop_difference(fast, exact).mean;
    sum += mean;
    worst = std::max(worst, mean);
    ++count;
  }
  if (count == 0) GTEST_SKIP() << "no JPEG files of a fitting size";
  EXPECT_LE(sum / count, 0.3);
  EXPECT_LE(worst, 1.2);
}

TEST(CropDecoder, DecodesIdentityCropsExactlyWithoutSubsampling) {
  JpegKind kind{.colours = JpegColours::gray};
  const std::vector<uint8_t> file = make_jpeg({50, 40}, kind);
  EXPECT_EQ(compare(file, plain_crop({0, 0, 50, 40})).most, 0);
  EXPECT_EQ(compare(file, plain_crop({13, 9, 17, 21})).most, 0);
}

// Chroma is rounded where and as libjpeg rounds it. The remaining differences are the last bit of
// the colours, and of chroma at the image's edges.
TEST(CropDecoder, DecodesIdentityCropsNearlyExactlyWithSubsampling) {
  const int samplings[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}};
  for (const auto& sampling : samplings) {
    JpegKind kind{.sampling_x = sampling[0], .sampling_y = sampling[1]};
    const std::vector<uint8_t> file = make_jpeg({67, 54}, kind);
    for (int trial = 0; trial < 8; ++trial) {
      CropSpec spec = plain_crop({trial % 2, trial / 2 % 2, 66 - trial, 53 - trial / 2});
      spec.window.x = trial % 3;
      spec.window.width -= 5;
      spec.flip = trial >= 4;
      SCOPED_TRACE(describe(kind) + " trial " + std::to_string(trial));
      const Difference d = compare(file, spec);
      EXPECT_LE(d.most, 2);
      EXPECT_LE(d.mean, 0.02);
    }
  }
}

TEST(CropDecoder, LeavesOtherKindsToLibjpeg) {
  CropDecoder crop(kCropMaxPixels, PixelPolicy::fast);
  Pixels out({16, 16});
  const auto decodes = [&](const JpegKind& kind, Filter filter = Filter::bilinear) {
    CropSpec spec{{0, 0, 40, 40}, {16, 16}, {0, 0, 16, 16}};
    spec.filter = filter;
    return crop.decode(make_jpeg({40, 40}, kind), spec, out.view());
  };
  EXPECT_TRUE(decodes({}));
  EXPECT_TRUE(decodes({}, Filter::bicubic));  // as under the exact policies
  EXPECT_TRUE(decodes({.progressive = true}));
  EXPECT_FALSE(decodes({.progressive = true, .scans_kept = 9}));  // which refuses them
  EXPECT_FALSE(decodes({.interleaved = false}));
  for (const bool progressive : {false, true}) {
    EXPECT_FALSE(decodes({.progressive = progressive, .arithmetic = true}));
    for (const JpegColours colours : {JpegColours::rgb, JpegColours::cmyk, JpegColours::ycck}) {
      EXPECT_FALSE(decodes({.colours = colours, .progressive = progressive}));
    }
  }
}

TEST(CropDecoder, LeavesToLibjpegWhatIsTooLarge) {
  const std::vector<uint8_t> file = make_jpeg({64, 48}, {});
  Pixels out({16, 16});
  const CropSpec spec{{0, 0, 64, 48}, {16, 16}, {0, 0, 16, 16}};
  EXPECT_TRUE(CropDecoder(64 * 48, PixelPolicy::fast).decode(file, spec, out.view()));
  EXPECT_FALSE(CropDecoder(64 * 48 - 1, PixelPolicy::fast).decode(file, spec, out.view()));
  CropSpec outside = spec;
  outside.crop.width = 65;
  EXPECT_FALSE(CropDecoder(kCropMaxPixels, PixelPolicy::fast).decode(file, outside, out.view()));
}

TEST(CropDecoder, BoundsItsScratch) {
  CropDecoder crop(int64_t{1} << 30, PixelPolicy::fast);
  const std::vector<uint8_t> file = make_jpeg({3000, 2400}, {});
  const std::vector<uint8_t> tall = make_jpeg({200, 9000}, {});
  Pixels large({3000, 2400}), small({224, 224});
  EXPECT_FALSE(crop.decode(file, plain_crop({0, 0, 3000, 2400}), large.view()));
  EXPECT_LT(crop.scratch_bytes(), int64_t{4} << 20);
  const CropSpec spec{{500, 300, 2400, 2000}, {224, 224}, {0, 0, 224, 224}};
  EXPECT_TRUE(crop.decode(file, spec, small.view()));
  EXPECT_GT(crop.scratch_bytes(), int64_t{6} << 20);
  EXPECT_TRUE(crop.decode(tall, {{0, 0, 200, 9000}, {224, 224}, {0, 0, 224, 224}}, small.view()));
  Pixels wide({2000, 900});
  EXPECT_TRUE(crop.decode(file, plain_crop({100, 100, 2000, 900}), wide.view()));
  EXPECT_LE(crop.scratch_bytes(), kMaxCropScratch);
}

TEST(CropDecoder, KeepsOneKindOfPixelsAtItsLargest) {
  const std::vector<uint8_t> file = make_jpeg({3000, 2400}, {});
  CropSpec spec = plain_crop({100, 100, 2000, 900});
  Pixels out({2000, 900});
  const auto scratch = [&](std::initializer_list<Filter> filters) {
    CropDecoder crop(int64_t{1} << 30, PixelPolicy::fast);
    for (const Filter filter : filters) {
      spec.filter = filter;
      EXPECT_TRUE(crop.decode(file, spec, out.view()));
    }
    return crop.scratch_bytes();
  };
  const int64_t fast = scratch({Filter::bilinear}), exact = scratch({Filter::bicubic});
  constexpr int64_t kAxes = int64_t{2} << 20;
  EXPECT_GT(std::min(fast, exact), 2 * kAxes);
  EXPECT_LE(scratch({Filter::bilinear, Filter::bicubic}), exact + kAxes);
  EXPECT_LE(scratch({Filter::bicubic, Filter::bilinear}), fast + kAxes);
}

TEST(CropDecoder, GivesTheSameBytesOnEveryTarget) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 60; ++trial) {
    JpegKind kind{.sampling_x = 1 + trial % 2, .sampling_y = 1 + trial / 2 % 2};
    const Size size{30 + static_cast<int>(random() % 200), 30 + static_cast<int>(random() % 200)};
    const std::vector<uint8_t> file = make_jpeg(size, kind, static_cast<uint32_t>(trial));
    const CropSpec spec = random_spec(size, random);
    const PixelPolicy policy = trial % 3 == 0 ? PixelPolicy::exact : PixelPolicy::fast;
    std::vector<uint8_t> first;
    for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
      hwy::SetSupportedTargetsForTest(target);
      CropDecoder crop(kCropMaxPixels, policy);
      Pixels out({spec.window.width, spec.window.height});
      ASSERT_TRUE(crop.decode(file, spec, out.view()));
      if (first.empty()) first = out.packed();
      ASSERT_EQ(out.packed(), first) << hwy::TargetName(target) << " trial " << trial;
    }
    hwy::SetSupportedTargetsForTest(0);
  }
}

TEST(FastPolicy, TakesCropDecoderWhereItCanAndTheExactPathElsewhere) {
  const CropSpec spec{{3, 5, 50, 60}, {32, 32}, {0, 0, 32, 32}};
  ImageDecoder fast({.pixels = PixelPolicy::fast});
  ImageDecoder exact({.pixels = PixelPolicy::exact_pillow12});
  CropDecoder crop(kCropMaxPixels, PixelPolicy::fast);
  Pixels a({32, 32}), b({32, 32}), c({32, 32});
  JpegKind kind;
  const auto decode = [&] {
    const std::vector<uint8_t> file = make_jpeg({70, 80}, kind);
    EXPECT_TRUE(fast.decode(file, spec, a.view()).ok());
    EXPECT_TRUE(exact.decode(file, spec, b.view()).ok());
    return crop.decode(file, spec, c.view());
  };
  for (const bool progressive : {false, true}) {
    kind.progressive = progressive;
    ASSERT_TRUE(decode());
    EXPECT_EQ(a.packed(), c.packed());
    EXPECT_NE(a.packed(), b.packed());
  }
  kind.arithmetic = true;
  ASSERT_FALSE(decode());
  EXPECT_EQ(a.packed(), b.packed());
}

TEST(FastPolicy, LeavesTurnedImagesToTheExactPath) {
  JpegKind kind{.exif_orientation = 6};
  const std::vector<uint8_t> file = make_jpeg({70, 80}, kind);
  const CropSpec spec{{3, 5, 60, 50}, {32, 32}, {0, 0, 32, 32}};
  ImageDecoder fast({.pixels = PixelPolicy::fast, .exif = ExifPolicy::apply});
  ImageDecoder exact({.pixels = PixelPolicy::exact_pillow12, .exif = ExifPolicy::apply});
  Pixels a({32, 32}), b({32, 32});
  ASSERT_TRUE(fast.decode(file, spec, a.view()).ok());
  ASSERT_TRUE(exact.decode(file, spec, b.view()).ok());
  EXPECT_EQ(a.packed(), b.packed());
}

}  // namespace
}  // namespace stoker
