#include "train/model/whitening.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "pipeline/source/synthetic_source.h"

namespace stoker {
namespace {

constexpr std::array<float, 3> kMean{0.4914f, 0.4822f, 0.4465f};
constexpr std::array<float, 3> kStddev{0.2470f, 0.2435f, 0.2616f};
constexpr int kN = PatchMoments::kSize;

std::vector<uint8_t> random_image(int width, int height, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<uint8_t> pixels(3 * width * height);
  for (auto& pixel : pixels) pixel = static_cast<uint8_t>(generator());
  return pixels;
}

TEST(Whitening, MomentsAreThoseOfNormalisedPatches) {
  const auto pixels = random_image(5, 4, 1);
  PatchMoments moments;
  moments.add({pixels.data(), 5, 4, 15});
  ASSERT_EQ(moments.patches(), 12);
  std::vector<double> expected(kN * kN);
  for (int y = 0; y < 3; ++y) {
    for (int x = 0; x < 4; ++x) {
      double patch[kN];  // OIHW: channel, dy, dx
      for (int c = 0; c < 3; ++c) {
        for (int dy = 0; dy < 2; ++dy) {
          for (int dx = 0; dx < 2; ++dx) {
            patch[c * 4 + dy * 2 + dx] =
                (pixels[((y + dy) * 5 + x + dx) * 3 + c] / 255.0 - kMean[c]) / kStddev[c];
          }
        }
      }
      for (int i = 0; i < kN; ++i) {
        for (int j = 0; j < kN; ++j) expected[i * kN + j] += patch[i] * patch[j] / 12;
      }
    }
  }
  const auto covariance = moments.covariance(kMean, kStddev);
  for (int i = 0; i < kN * kN; ++i) EXPECT_NEAR(covariance[i], expected[i], 1e-10) << i;
}

TEST(Whitening, EigenvectorsOfARandomMatrix) {
  std::mt19937 generator(7);
  std::normal_distribution<double> normal;
  for (const int n : {1, 2, 5, 12}) {
    std::vector<double> matrix(n * n);
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j <= i; ++j) matrix[i * n + j] = matrix[j * n + i] = normal(generator);
    }
    const Eigen eigen = symmetric_eigen(matrix, n);
    for (int k = 0; k < n; ++k) {
      EXPECT_LE(eigen.values[k], eigen.values[std::max(k - 1, 0)]);
      double length = 0;
      for (int i = 0; i < n; ++i) {
        double product = 0;
        for (int j = 0; j < n; ++j) product += matrix[i * n + j] * eigen.vectors[k * n + j];
        EXPECT_NEAR(product, eigen.values[k] * eigen.vectors[k * n + i], 1e-11);
        length += eigen.vectors[k * n + i] * eigen.vectors[k * n + i];
      }
      EXPECT_NEAR(length, 1, 1e-12);
    }
  }
}

TEST(Whitening, EigenvaluesKnownInClosedForm) {
  const std::vector<double> diagonal = {1, 0, 0, 0, 5, 0, 0, 0, 3};
  EXPECT_EQ(symmetric_eigen(diagonal, 3).values, (std::vector<double>{5, 3, 1}));
  const Eigen eigen = symmetric_eigen(std::vector<double>{2, 1, 1, 2}, 2);
  EXPECT_NEAR(eigen.values[0], 3, 1e-14);
  EXPECT_NEAR(eigen.values[1], 1, 1e-14);
}

// The outputs of the filters over the data must be uncorrelated and have variance one.
TEST(Whitening, OutputsOfTheFiltersAreWhite) {
  const auto source = make_synthetic_source(300, {16, 16}, 10, 3);
  const AugmentSpec spec("resize", {16, 16});
  const PatchMoments moments = patch_moments(*source, spec, {});
  EXPECT_EQ(moments.patches(), 300 * 15 * 15);
  const auto filters = whitening_filters(moments, kMean, kStddev, 0.0);
  ASSERT_EQ(filters.size(), 24u * kN);
  const auto covariance = moments.covariance(kMean, kStddev);
  for (int a = 0; a < kN; ++a) {
    for (int b = 0; b < kN; ++b) {
      double product = 0;
      for (int i = 0; i < kN; ++i) {
        for (int j = 0; j < kN; ++j) {
          product += filters[a * kN + i] * covariance[i * kN + j] * filters[b * kN + j];
        }
      }
      EXPECT_NEAR(product, a == b ? 1 : 0, 1e-4);
    }
  }
  for (int i = 0; i < kN * kN; ++i) EXPECT_EQ(filters[i], -filters[kN * kN + i]);
  EXPECT_EQ(filters, whitening_filters(patch_moments(*source, spec, {}), kMean, kStddev, 0.0));
}

TEST(Whitening, FlatImagesGiveFiniteFilters) {
  const std::vector<uint8_t> black(3 * 8 * 8, 0);
  PatchMoments moments;
  moments.add({black.data(), 8, 8, 24});
  for (const float value : whitening_filters(moments, kMean, kStddev)) {
    EXPECT_TRUE(std::isfinite(value));
  }
}

}  // namespace
}  // namespace stoker
