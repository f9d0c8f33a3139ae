// Colours, blurs and sharpness (decode/pixel): every instruction set gives the bytes of the plain
// twins, which are Pillow's. tests/golden/pixel has values that Pillow and torchvision made.

// So that the list of instruction sets has the one with AVX-512 VBMI, which byte_table.cc uses.
#define HWY_WANT_AVX3_DL

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <random>
#include <sstream>
#include <string>

#include "decode/pixel/blur.h"
#include "decode/pixel/byte_table.h"
#include "decode/pixel/colour.h"
#include "decode/pixel/gaussian_kernel.h"
#include "decode/pixel/hsv.h"
#include "tests/decode/every_target.h"
#include "tests/decode/pixels.h"
#include "tests/support/blur_reference.h"
#include "tests/support/colour_operations.h"
#include "tests/support/colour_reference.h"
#include "tests/support/hsv_reference.h"

namespace stoker {
namespace {

using InPlace = std::function<void(MutableImageView)>;

// Images of all sizes, packed and with gaps: noise, few values, one colour, smooth ones.
Pixels any_image(int trial, std::mt19937& random) {
  const auto upto = [&](unsigned most) { return 1 + static_cast<int>(random() % most); };
  const Size size = trial % 8 == 0 ? Size{upto(1500), upto(3)} : Size{upto(90), upto(50)};
  Pixels image = noise(size, random(), trial % 3 == 0 ? 0 : trial % 7);
  const int kind = trial / 3 % 4;
  const uint32_t start = random() % 200;
  for (int y = 0; y < size.height; ++y) {
    for (int i = 0; i < 3 * size.width; ++i) {
      uint8_t& byte = image.pixel(0, y)[i];
      if (kind == 1) byte = static_cast<uint8_t>(byte % 3 * 127);
      if (kind == 2) byte = static_cast<uint8_t>(start);
      if (kind == 3) byte = static_cast<uint8_t>(start + byte % 16 + i / 3 % 40);
    }
  }
  return image;
}

class PixelColours : public EveryTarget {
 protected:
  double factor() {
    const double extremes[] = {0, 1, 2, 0.5, 1e-9, 40, 3e38};
    if (random_() % 4 == 0) return extremes[random_() % 7];
    return std::uniform_real_distribution<double>(0, 2.5)(random_);
  }

  // Runs both on the same images, `trials` times. make() draws one operation and its twin.
  template <class Make>
  void compare(int trials, const Make& make) {
    for (int trial = 0; trial < trials; ++trial) {
      Pixels image = any_image(trial, random_);
      Pixels expected = image;
      const auto [fast, plain] = make();
      fast(image.view());
      plain(expected.view());
      ASSERT_EQ(image.packed(), expected.packed())
          << "trial " << trial << ", " << image.size().width << "x" << image.size().height;
      ASSERT_TRUE(image.gaps_intact()) << trial;
    }
  }

  // An operation with a factor, and its twin.
  void compare_factor(void (*fast)(MutableImageView, double),
                      void (*plain)(MutableImageView, double), double low = 0, double high = 0) {
    compare(300, [&] {
      const double f =
          low < high ? std::uniform_real_distribution<double>(low, high)(random_) : factor();
      return std::pair<InPlace, InPlace>{[=](MutableImageView image) { fast(image, f); },
                                         [=](MutableImageView image) { plain(image, f); }};
    });
  }

  // The twins take most of the time.
  void compare_every_colour(const InPlace& fast, const InPlace& plain) {
    Pixels image({4096, 16}), expected = image;
    for (int red = 0; red < 256; ++red) {
      for (int i = 0; i < 65536; ++i) {
        uint8_t* pixel = image.pixel(0, 0) + 3 * i;
        pixel[0] = static_cast<uint8_t>(red);
        pixel[1] = static_cast<uint8_t>(i >> 8);
        pixel[2] = static_cast<uint8_t>(i);
      }
      expected = image;
      fast(image.view());
      plain(expected.view());
      ASSERT_EQ(image.packed(), expected.packed()) << "red " << red;
    }
  }

  std::mt19937 random_{17};
  PixelScratch scratch_;
};

TEST_P(PixelColours, BlendsAreThePlainTwins) {
  compare_factor(adjust_brightness, brightness_reference);
  compare_factor(adjust_contrast, contrast_reference);
  compare_factor(adjust_saturation, saturation_reference);
  compare(300, [&] {
    const double f = factor();
    return std::pair<InPlace, InPlace>{
        [=, this](MutableImageView image) { adjust_sharpness(image, f, scratch_); },
        [=](MutableImageView image) { sharpness_reference(image, f); }};
  });
}

// Some products of these factors and the distance of two bytes are integers, or nearer to one than
// a rounded sum tells.
TEST_P(PixelColours, BlendsByFactorsNearIntegers) {
  Pixels image({4096, 16});
  for (const double factor : {0.0, 1e-7, 0.1, 0.5, std::nextafter(0.5f, 1.0f) + 0.0, 0.99999994,
                              1.0, 1.00000012, 1.5, 255.0, 1e30, -0.3}) {
    for (int i = 0; i < 65536; ++i) {
      const uint8_t pixel[] = {static_cast<uint8_t>(37 * i), static_cast<uint8_t>(i >> 8),
                               static_cast<uint8_t>(i)};
      std::copy_n(pixel, 3, image.pixel(0, 0) + ptrdiff_t{3} * i);
    }
    Pixels expected = image;
    adjust_saturation(image.view(), factor);
    saturation_reference(expected.view(), factor);
    ASSERT_EQ(image.packed(), expected.packed()) << factor;
  }
}

TEST_P(PixelColours, MapsAreThePlainTwins) {
  compare_factor(solarize, solarize_reference, -3, 260);
  compare_factor(adjust_gamma, gamma_reference, 0, 4);
  compare_factor(adjust_hue, hue_reference, -0.5, 0.5);
  compare(300, [&] {
    const auto upto = [&](double most) {
      return std::uniform_real_distribution<double>(0, most)(random_);
    };
    const HsvChange change{2 * upto(1) - 1, upto(2), upto(2)};
    return std::pair<InPlace, InPlace>{
        [=](MutableImageView image) { adjust_hsv(image, change); },
        [=](MutableImageView image) { hsv_reference(image, change); }};
  });
  compare(100, [&] {
    const int bits = 1 + static_cast<int>(random_() % 8);
    return std::pair<InPlace, InPlace>{
        [=](MutableImageView image) { posterize(image, bits); },
        [=](MutableImageView image) { posterize_reference(image, bits); }};
  });
}

TEST_P(PixelColours, OperationsWithoutANumberAreThePlainTwins) {
  using Pair = std::pair<InPlace, InPlace>;
  for (const Pair& pair :
       {Pair{grayscale, grayscale_reference}, Pair{invert, invert_reference},
        Pair{equalize, equalize_reference}, Pair{autocontrast, autocontrast_reference}}) {
    compare(300, [&] { return pair; });
  }
}

TEST_P(PixelColours, TablesPerChannelAndComposedTables) {
  for (int trial = 0; trial < 200; ++trial) {
    Pixels image = any_image(trial, random_);
    Pixels expected = image, one_by_one = image, together = image;
    std::array<ByteTable, 3> tables;
    for (ByteTable& table : tables) {
      for (uint8_t& byte : table) byte = static_cast<uint8_t>(random_());
    }
    apply_tables(image.view(), tables);
    for (int y = 0; y < image.size().height; ++y) {
      for (int i = 0; i < 3 * image.size().width; ++i) {
        uint8_t& byte = expected.pixel(0, y)[i];
        byte = tables[i % 3][byte];
      }
    }
    ASSERT_EQ(image.packed(), expected.packed()) << trial;
    ASSERT_TRUE(image.gaps_intact());
    apply_table(one_by_one.view(), tables[0]);
    apply_table(one_by_one.view(), tables[1]);
    apply_table(together.view(), composed(tables[0], tables[1]));
    ASSERT_EQ(one_by_one.packed(), together.packed()) << trial;
  }
}

// Every colour there is, with some turns of the hue.
TEST_P(PixelColours, HueOfEveryColour) {
  for (const double factor : {0.0, -0.31}) {
    compare_every_colour([=](MutableImageView image) { adjust_hue(image, factor); },
                         [=](MutableImageView image) { hue_reference(image, factor); });
  }
}

TEST_P(PixelColours, HsvOfEveryColour) {
  for (const HsvChange& change : {HsvChange{}, HsvChange{0.0131, 1.57, 0.83}}) {
    compare_every_colour([=](MutableImageView image) { adjust_hsv(image, change); },
                         [=](MutableImageView image) { hsv_reference(image, change); });
  }
}

TEST_P(PixelColours, PillowsBlurIsThePlainTwin) {
  for (int trial = 0; trial < 150; ++trial) {
    const Pixels image = any_image(trial, random_);
    Pixels out(image.size(), trial % 5), expected = out;
    const double radii[] = {0, 1e-20, 0.3, 1, 2, 9.5, 60, 2000};
    const double radius = trial % 3 == 0 ? radii[random_() % 8]
                                         : std::uniform_real_distribution<double>(0, 4)(random_);
    pillow_gaussian_blur(image.view(), radius, out.view(), scratch_);
    pillow_gaussian_blur_reference(image.view(), radius, expected.view());
    ASSERT_EQ(out.packed(), expected.packed()) << trial << ", radius " << radius;
    ASSERT_TRUE(out.gaps_intact());
  }
}

TEST_P(PixelColours, TorchvisionsBlurIsThePlainTwin) {
  for (int trial = 0; trial < 150; ++trial) {
    const Pixels image = any_image(trial, random_);
    const auto draw_kernel = [&](int size) {
      return 2 * static_cast<int>(random_() % static_cast<unsigned>(std::min(size, 24))) + 1;
    };
    const int kernel_x = draw_kernel(image.size().width);
    const int kernel_y = draw_kernel(image.size().height);
    const auto sigma = [&] { return std::uniform_real_distribution<double>(0.05, 3)(random_); };
    const double x = sigma(), y = sigma();
    Pixels out(image.size(), trial % 5), expected = out;
    gaussian_blur(image.view(), kernel_x, kernel_y, x, y, out.view(), scratch_);
    gaussian_blur_reference(image.view(), kernel_x, kernel_y, x, y, expected.view());
    ASSERT_EQ(out.packed(), expected.packed()) << trial;
    ASSERT_TRUE(out.gaps_intact());
  }
}

// Sums that are all in the middle between two bytes, where the last bit decides.
TEST_P(PixelColours, TorchvisionsBlurOfTies) {
  Pixels image({40, 30}), out = image, expected = image;
  for (int y = 0; y < 30; ++y) {
    for (int i = 0; i < 120; ++i) image.pixel(0, y)[i] = static_cast<uint8_t>((y + i / 3) % 2);
  }
  for (const double sigma : {1.7, 2.9, 40.0}) {
    gaussian_blur(image.view(), 23, 21, sigma, sigma, out.view(), scratch_);
    gaussian_blur_reference(image.view(), 23, 21, sigma, sigma, expected.view());
    EXPECT_EQ(out.packed(), expected.packed()) << sigma;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, PixelColours, every_target(), target_name);

// Every line is an operation, the image and a hash of what another library made of it.
void expect_golden(const char* name_of_file, int lines) {
  std::ifstream file(std::string(STOKER_GOLDEN_DIR) + "/pixel/" + name_of_file);
  ColourRoom room;
  int count = 0;
  for (std::string line; std::getline(file, line); ++count) {
    std::istringstream words(line);
    std::string name, hash;
    Size size;
    uint32_t seed = 0;
    words >> hash >> name >> size.width >> size.height >> seed;
    std::vector<double> numbers;
    for (double number = 0; words >> number;) numbers.push_back(number);
    Pixels image = noise(size, seed, static_cast<int>(seed % 5));
    // Every other image has a narrow histogram.
    if (seed % 2 != 0) {
      ByteTable narrow;
      for (int v = 0; v < 256; ++v) narrow[v] = static_cast<uint8_t>(v / 4 + 60);
      apply_table(image.view(), narrow);
    }
    ASSERT_TRUE(run_colour_operation(name, image.view(), numbers, room)) << name;
    EXPECT_EQ(fnv1a(image.packed()), hash) << line;
    EXPECT_TRUE(image.gaps_intact()) << line;
  }
  EXPECT_EQ(count, lines);
}

TEST(PixelColourGolden, IsPillows) { expect_golden("colour.txt", 420); }

TEST(PixelColourGolden, HsvIsOpenCvs) { expect_golden("hsv.txt", 40); }

TEST(PixelColourGolden, GaussianKernelsAreTorchvisions) {
  std::ifstream file(std::string(STOKER_GOLDEN_DIR) + "/pixel/gaussian_kernels.txt");
  int count = 0;
  for (std::string line; std::getline(file, line); ++count) {
    std::istringstream words(line);
    std::string hash;
    int taps = 0;
    double sigma = 0;
    words >> hash >> taps >> sigma;
    std::vector<float> half(static_cast<size_t>(taps / 2 + 1)), kernel;
    make_gaussian_kernel(taps, sigma, half.data());
    for (int i = 0; i < taps; ++i) kernel.push_back(half[std::abs(i - taps / 2)]);
    std::vector<uint8_t> bytes(kernel.size() * sizeof(float));
    std::memcpy(bytes.data(), kernel.data(), bytes.size());
    EXPECT_EQ(fnv1a(bytes), hash) << line;
  }
  EXPECT_EQ(count, 100);
}

// Arguments that no caller passes on purpose: nothing is undefined, which UBSan sees.
TEST(PixelColourNumbers, AnyFiniteNumberIsDefined) {
  PixelScratch scratch;
  constexpr double kHuge = std::numeric_limits<double>::max();
  for (const double number : {-kHuge, -1e10, -1.0, 0.0, 5e-324, 1e10, kHuge}) {
    Pixels image = noise({20, 20}, 3), out = image;
    adjust_brightness(image.view(), number);
    adjust_contrast(image.view(), number);
    adjust_saturation(image.view(), number);
    adjust_hue(image.view(), number);
    adjust_hsv(image.view(), {number, number, number});
    adjust_sharpness(image.view(), number, scratch);
    solarize(image.view(), number);
    adjust_gamma(image.view(), number);
    pillow_gaussian_blur(image.view(), number, out.view(), scratch);
    if (number > 0) gaussian_blur(image.view(), 5, 7, number, number, out.view(), scratch);
  }
  for (const int bits : {-2147483647 - 1, -1, 0, 9, 2147483647}) posterize_table(bits);
  Pixels nothing({0, 0});
  EXPECT_EQ(mean_luma(nothing.view()), 0);
}

TEST(PixelScratch, GrowsAndSaysItsSize) {
  PixelScratch scratch;
  EXPECT_EQ(scratch.bytes(), 0);
  const auto* first = scratch.grow<float>(100);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
  EXPECT_EQ(scratch.bytes(), 400);
  EXPECT_EQ(scratch.grow<uint8_t>(7), reinterpret_cast<const uint8_t*>(first));
  EXPECT_EQ(scratch.bytes(), 400);
}

}  // namespace
}  // namespace stoker
