// CropDecoder under the exact policies: the bytes of libjpeg-turbo and Pillow's resize, for every
// file that it takes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <random>

#include "decode/crop_decoder.h"
#include "decode/image_decoder.h"
#include "decode/jpeg/seek_index.h"
#include "tests/decode/jpeg_maker.h"
#include "tests/decode/jpeg_recoder.h"
#include "tests/decode/libjpeg_path.h"
#include "tests/decode/progressive_scripts.h"
#include "tests/decode/random_spec.h"

namespace stoker {
namespace {

constexpr int64_t kExactMaxPixels = 1 << 26;

CropSpec any_spec(Size image, std::mt19937& random) {
  CropSpec spec = random_spec(image, random);
  spec.filter = static_cast<Filter>(random() % kFilterCount);
  return spec;
}

class ExactPixels : public ::testing::TestWithParam<PixelPolicy> {
 protected:
  // Returns true if CropDecoder takes the file; its pixels must then be those of the oracle.
  bool takes(const std::vector<uint8_t>& file, const CropSpec& spec) {
    const Size size{spec.window.width, spec.window.height};
    Pixels got(size, 7), expected(size);
    if (!crop_.decode(file, spec, got.view())) return false;
    EXPECT_TRUE(got.gaps_intact());
    const DecodeStatus status = oracle_.decode(file, spec, expected.view());
    EXPECT_TRUE(status.ok()) << status.message;
    EXPECT_EQ(got.packed(), expected.packed());
    return true;
  }

  CropDecoder crop_{kExactMaxPixels, GetParam()};
  LibjpegPath oracle_{kExactMaxPixels, GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Policies, ExactPixels,
                         ::testing::Values(PixelPolicy::exact, PixelPolicy::exact_pillow12),
                         [](const auto& policy) {
                           return policy.param == PixelPolicy::exact ? "exact" : "exact_pillow12";
                         });

TEST_P(ExactPixels, AreLibjpegsAndPillowsForEverySampling) {
  std::mt19937 random(1);
  const int samplings[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}};
  for (const auto& sampling : samplings) {
    for (int trial = 0; trial < 60 && !HasFailure(); ++trial) {
      JpegKind kind{.quality = 40 + trial,
                    .sampling_x = sampling[0],
                    .sampling_y = sampling[1],
                    .restart_rows = trial % 3};
      const Size size{3 + static_cast<int>(random() % 260), 3 + static_cast<int>(random() % 200)};
      SCOPED_TRACE(describe(kind) + " trial " + std::to_string(trial));
      const std::vector<uint8_t> file = make_jpeg(size, kind, static_cast<uint32_t>(trial));
      for (int crop = 0; crop < 4; ++crop) EXPECT_TRUE(takes(file, any_spec(size, random)));
    }
  }
}

TEST_P(ExactPixels, AreLibjpegsAndPillowsForProgressiveFiles) {
  std::mt19937 random(7);
  int taken = 0;
  for (int trial = 0; trial < 300 && !HasFailure(); ++trial) {
    JpegKind kind;
    const bool is_grey = trial % 7 == 0;
    if (is_grey) kind.colours = JpegColours::gray;
    kind.sampling_x = 1 + trial % 2;
    kind.sampling_y = 1 + trial / 2 % 2;
    kind.quality = 40 + trial % 61;
    // Often tiny: then the last MCUs have blocks without samples.
    const unsigned most = trial % 3 == 0 ? 20 : 200;
    const Size size{5 + static_cast<int>(random() % most), 3 + static_cast<int>(random() % most)};
    SCOPED_TRACE(describe(kind) + " trial " + std::to_string(trial));
    Recoding recoding{trial % 4 == 0 ? 1 + trial % 9 : 0, true};
    recoding.scans = random_script(is_grey ? 1 : 3, random).scans;
    const auto file = recode_jpeg(make_jpeg(size, kind, static_cast<uint32_t>(trial)), recoding);
    for (int crop = 0; crop < 3; ++crop) taken += takes(file, any_spec(size, random));
  }
  EXPECT_EQ(taken, 900);
}

TEST_P(ExactPixels, AreLibjpegsAndPillowsForGreyAndTinyImages) {
  std::mt19937 random(2);
  int taken = 0;
  for (int trial = 0; trial < 300 && !HasFailure(); ++trial) {
    JpegKind kind;
    if (trial % 3 == 0) kind.colours = JpegColours::gray;
    kind.sampling_x = 1 + trial % 2;
    kind.sampling_y = 1 + trial / 2 % 2;
    const Size size{1 + static_cast<int>(random() % 20), 1 + static_cast<int>(random() % 20)};
    SCOPED_TRACE(describe(kind) + " trial " + std::to_string(trial));
    taken += takes(make_jpeg(size, kind, static_cast<uint32_t>(trial)), any_spec(size, random));
  }
  EXPECT_GE(taken, 250);  // libjpeg does not blend chroma of one or two columns
}

// Large enough for many strips, with every position of the crop's corner in an MCU.
TEST_P(ExactPixels, AreLibjpegsAndPillowsAtEveryCorner) {
  JpegKind kind;
  for (const int down : {1, 2}) {
    kind.sampling_x = 2;
    kind.sampling_y = down;
    const Size size{150, 170};
    const std::vector<uint8_t> file = make_jpeg(size, kind, 5);
    for (int at = 0; at < 34 && !HasFailure(); ++at) {
      SCOPED_TRACE(describe(kind) + " at " + std::to_string(at));
      const CropSpec corner{{at, at, size.width - at, size.height - at}, {64, 64}, {0, 0, 64, 64}};
      EXPECT_TRUE(takes(file, corner));
      const CropSpec end{{0, 0, size.width - at, size.height - at}, {64, 64}, {0, 0, 64, 64}, true};
      EXPECT_TRUE(takes(file, end));
      EXPECT_TRUE(takes(file, plain_crop({at, at, 33, 65})));
    }
  }
}

TEST_P(ExactPixels, AreLibjpegsAndPillowsForRealFiles) {
  const char* data = std::getenv("STOKER_DATA");
  if (data == nullptr) GTEST_SKIP() << "STOKER_DATA is not set";
  std::mt19937 random(3);
  int taken = 0, files = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::string(data) + "/imagenet-samples")) {
    if (!entry.is_regular_file() || HasFailure()) continue;
    SCOPED_TRACE(entry.path());
    const std::vector<uint8_t> file = read_file(entry.path());
    BaselineJpeg jpeg;
    if (!parse_baseline(file, jpeg)) continue;
    ++files;
    const CropSpec spec = any_spec(jpeg.size, random);
    taken += takes(file, spec);
    if (files % 4 != 0) continue;
    const Recoding progressive{0, true, libjpegs_scans(jpeg.component_count)};
    EXPECT_TRUE(takes(recode_jpeg(file, progressive), spec));
  }
  EXPECT_GT(taken, 0);
  EXPECT_EQ(taken, files);
}

TEST_P(ExactPixels, RareSamplingsAreLibjpegs) {
  JpegKind kind;
  const CropSpec spec{{0, 0, 40, 40}, {16, 16}, {0, 0, 16, 16}};
  const int samplings[][2] = {{4, 1}, {4, 2}, {1, 3}, {2, 3}, {1, 4}};
  for (const auto& sampling : samplings) {
    kind.sampling_x = sampling[0];
    kind.sampling_y = sampling[1];
    EXPECT_FALSE(takes(make_jpeg({40, 40}, kind), spec)) << describe(kind);
  }
}

TEST_P(ExactPixels, AreTheSameWithASeekIndex) {
  std::mt19937 random(4);
  SeekIndexBuilder builder;
  for (int trial = 0; trial < 40; ++trial) {
    JpegKind kind{.sampling_x = 1 + trial % 2, .sampling_y = 1 + trial / 2 % 2};
    const Size size{100, 120};
    const std::vector<uint8_t> file = make_jpeg(size, kind, static_cast<uint32_t>(trial));
    std::vector<uint8_t> index;
    ASSERT_TRUE(builder.build(file, SeekStep::eight, index));
    const CropSpec spec = any_spec(size, random);
    Pixels with({spec.window.width, spec.window.height}), without = with;
    ASSERT_TRUE(crop_.decode(file, spec, with.view(), index));
    ASSERT_TRUE(crop_.decode(file, spec, without.view()));
    EXPECT_EQ(with.packed(), without.packed()) << trial;
  }
  EXPECT_GT(crop_.seek_use().used, 30);
  EXPECT_EQ(crop_.seek_use().refused, 0);
}

// Files with coefficients that no picture has, with and without an index: libjpeg-turbo's sums may
// overflow, so CropDecoder refuses them.
TEST_P(ExactPixels, CoefficientsOfNoPictureAreLibjpegs) {
  std::mt19937 random(5);
  SeekIndexBuilder builder;
  int taken = 0, left = 0;
  for (int trial = 0; trial < 200 && !HasFailure(); ++trial) {
    JpegKind kind{.quality = trial % 2 == 0 ? 100 : 90};
    std::vector<uint8_t> file = make_jpeg({64, 64}, kind, static_cast<uint32_t>(trial));
    // Steps of the first quantisation table, from normal to absurd: all the same, or some of them.
    constexpr uint8_t kDqt[] = {0xFF, 0xDB};
    const auto dqt = std::search(file.begin(), file.end(), std::begin(kDqt), std::end(kDqt));
    for (int k = 0; k < 64; ++k) {
      uint8_t& step = *(dqt + 5 + k);
      if (trial % 2 == 0) {
        step = static_cast<uint8_t>(1 + trial / 8);
      } else if (random() % 4 == 0) {
        step = static_cast<uint8_t>(1 + random() % static_cast<unsigned>(2 + trial));
      }
    }
    SCOPED_TRACE(trial);
    CropSpec spec = any_spec({64, 64}, random);
    (takes(file, spec) ? taken : left) += 1;
    std::vector<uint8_t> index;
    if (!builder.build(file, SeekStep::row, index)) continue;
    Pixels out({spec.window.width, spec.window.height});
    EXPECT_EQ(crop_.decode(file, spec, out.view(), index), crop_.decode(file, spec, out.view()));
  }
  EXPECT_GT(taken, 20);
  EXPECT_GT(left, 20);
  EXPECT_EQ(crop_.seek_use().refused, 0);
}

TEST(ExactPolicy, FallsBackToLibjpegWhereItMust) {
  ImageDecoder decoder;
  LibjpegPath oracle(kExactMaxPixels);
  const CropSpec spec{{3, 4, 50, 40}, {31, 29}, {0, 0, 31, 29}, true};
  const std::vector<JpegKind> kinds = {{},
                                       {.progressive = true, .arithmetic = true},
                                       {.colours = JpegColours::cmyk},
                                       {.sampling_x = 4}};
  for (const JpegKind& kind : kinds) {
    const std::vector<uint8_t> file = make_jpeg({64, 48}, kind);
    Pixels got({31, 29}), expected({31, 29});
    EXPECT_TRUE(decoder.decode(file, spec, got.view()).ok());
    EXPECT_TRUE(oracle.decode(file, spec, expected.view()).ok());
    EXPECT_EQ(got.packed(), expected.packed()) << describe(kind);
  }
}

}  // namespace
}  // namespace stoker
