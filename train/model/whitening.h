// The filters of airbench's first convolution: the eigenvectors of the data's 2x2 patches, scaled
// to give outputs of variance one, and their negatives. A pure function of the source and the
// recipe. Sums are exact integers, so the order of reading does not matter. Threads: any.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "pipeline/augment.h"
#include "pipeline/source.h"

namespace stoker {

// Second moments of the patches (channel, dy, dx) of (height, width, 3) u8 images.
class PatchMoments {
 public:
  static constexpr int kSize = 12;  // 3 channels of 2x2 pixels
  void add(ImageView image);
  int64_t patches() const { return patches_; }
  // Returns the (12, 12) covariance of pixels normalised as (u8 / 255 - mean) / stddev; not
  // centred, as in airbench.
  std::array<double, kSize * kSize> covariance(const std::array<float, 3>& mean,
                                               const std::array<float, 3>& stddev) const;

 private:
  int64_t patches_ = 0;
  std::array<int64_t, kSize> sums_{};
  std::array<int64_t, kSize * kSize> products_{};
};

// Eigenvalues, descending, and unit eigenvectors (rows) of a symmetric (n, n) matrix, computed with
// cyclic Jacobi rotations.
struct Eigen {
  std::vector<double> values;
  std::vector<double> vectors;
};
Eigen symmetric_eigen(std::span<const double> matrix, int n);

// Returns (24, 3, 2, 2) f32, OIHW: v / sqrt(value + epsilon) by descending eigenvalue, then their
// negatives.
std::vector<float> whitening_filters(const PatchMoments& moments, const std::array<float, 3>& mean,
                                     const std::array<float, 3>& stddev, double epsilon = 5e-4);

// Reads about 5000 images of 32x32 (fewer if they are larger, for the same number of patches),
// spread evenly over the source. Skips bad samples. Throws std::runtime_error if none can be read.
PatchMoments patch_moments(const Source& source, const AugmentSpec& spec,
                           const DecodeOptions& decode);

}  // namespace stoker
