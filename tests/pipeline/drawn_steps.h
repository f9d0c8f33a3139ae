// Draws of a list of stages for one sample, and tests of distributions. For the tests of stages.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/augment.h"
#include "pipeline/augment/program.h"

namespace stoker {

struct Drawn {
  std::vector<PixelStep> steps;
  DecodePlan plan;

  // Returns the first step of this name; null: there is none.
  const PixelStep* find(std::string_view name) const {
    for (const PixelStep& step : steps) {
      if (step.kind->name == name) return &step;
    }
    return nullptr;
  }
};

inline Drawn draw(const AugmentSpec& spec, Size source, int64_t sample, int64_t epoch = 0,
                  uint64_t seed = 1) {
  Draws draws;
  draw_augmentation(spec, source, seed, epoch, sample, draws);
  EXPECT_EQ(draws.failure(), "");
  return {{draws.steps().begin(), draws.steps().end()}, plan_decode(draws)};
}

// The step's name, of one that warps by the number that is set; and that number's place.
inline std::pair<std::string, size_t> warp_of(const PixelStep& step) {
  if (step.kind->name != std::string_view("affine")) return {step.kind->name, 0};
  const auto& m = step.values;
  if (m[0] != 1) return {"rotate", 1};
  if (m[1] != 0) return {"shear_x", 1};
  if (m[3] != 0) return {"shear_y", 3};
  if (m[2] != 0) return {"translate_x", 2};
  if (m[5] != 0) return {"translate_y", 5};
  return {"identity", 0};
}

// The values are distributed evenly from `low` to `high`, by the test of Kolmogorov and Smirnov.
inline void expect_uniform(std::vector<double> values, double low, double high) {
  const double n = static_cast<double>(values.size());
  std::sort(values.begin(), values.end());
  double distance = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double cumulated = (values[i] - low) / (high - low);
    distance = std::max({distance, std::abs(cumulated - static_cast<double>(i) / n),
                         std::abs(cumulated - static_cast<double>(i + 1) / n)});
  }
  EXPECT_LT(distance * std::sqrt(n), 2.2);  // p < 1e-4
}

}  // namespace stoker
