#include "train/model/whitening.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

namespace stoker {
namespace {

constexpr int64_t kImagePixels = 5000 * 32 * 32;
constexpr int64_t kMinImages = 256;
constexpr int kMaxSweeps = 64;

// Not std::hypot(), which g++ takes from glibc 2.35: wheels of stoker run with 2.34 as well.
double hypotenuse(double x, double y) { return std::sqrt(x * x + y * y); }

// Rotates rows and columns p and q of the symmetric `a` so that a[p][q] becomes 0, and applies the
// same rotation to the rows of `v`.
void rotate(std::vector<double>& a, std::vector<double>& v, int n, int p, int q) {
  if (a[p * n + q] == 0) return;
  const double theta = (a[q * n + q] - a[p * n + p]) / (2 * a[p * n + q]);
  const double t = std::copysign(1.0, theta) / (std::fabs(theta) + hypotenuse(theta, 1.0));
  const double c = 1 / hypotenuse(t, 1.0), s = t * c;
  const auto turn = [c, s](double& x, double& y) {
    const double old = x;
    x = c * old - s * y;
    y = s * old + c * y;
  };
  for (int k = 0; k < n; ++k) turn(a[k * n + p], a[k * n + q]);
  for (int k = 0; k < n; ++k) turn(a[p * n + k], a[q * n + k]);
  for (int k = 0; k < n; ++k) turn(v[p * n + k], v[q * n + k]);
}

double off_diagonal(const std::vector<double>& a, int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) sum += i == j ? 0 : a[i * n + j] * a[i * n + j];
  }
  return sum;
}

// Reads one sample and augments it as the recipe does; returns false for a bad sample.
bool load(const Source& source, SampleId id, Augmenter& augmenter, std::vector<uint8_t>& buffer,
          MutableImageView out) {
  std::span<const uint8_t> bytes;
  if (!source.read(id, buffer, bytes).ok) return false;
  if (source.encoding() == SampleEncoding::image_file) {
    Size size;
    return augmenter.file_row(bytes, 0, 0, id, out, size).ok();
  }
  return augmenter
      .raw_row(bytes, source.encoding() == SampleEncoding::raw_planar, source.raw_size(), 0, 0, id,
               out)
      .ok();
}

}  // namespace

void PatchMoments::add(ImageView image) {
  std::array<int64_t, kSize> patch;
  for (int y = 0; y + 1 < image.height; ++y) {
    for (int x = 0; x + 1 < image.width; ++x) {
      for (int i = 0; i < kSize; ++i) {
        const int channel = i / 4, dy = i / 2 % 2, dx = i % 2;
        patch[i] = image.data[(y + dy) * image.stride_bytes + (x + dx) * 3 + channel];
      }
      for (int i = 0; i < kSize; ++i) {
        sums_[i] += patch[i];
        for (int j = 0; j <= i; ++j) products_[i * kSize + j] += patch[i] * patch[j];
      }
      ++patches_;
    }
  }
}

std::array<double, PatchMoments::kSize * PatchMoments::kSize> PatchMoments::covariance(
    const std::array<float, 3>& mean, const std::array<float, 3>& stddev) const {
  std::array<double, kSize * kSize> result{};
  const auto count = static_cast<double>(std::max<int64_t>(patches_, 1));
  // normalised = scale * u8 + offset
  const auto scale = [&](int i) { return 1 / (255.0 * stddev[i / 4]); };
  const auto offset = [&](int i) { return -static_cast<double>(mean[i / 4]) / stddev[i / 4]; };
  for (int i = 0; i < kSize; ++i) {
    for (int j = 0; j <= i; ++j) {
      const double product = static_cast<double>(products_[i * kSize + j]) / count;
      const double sum_i = static_cast<double>(sums_[i]) / count;
      const double sum_j = static_cast<double>(sums_[j]) / count;
      result[i * kSize + j] = result[j * kSize + i] =
          scale(i) * scale(j) * product + scale(i) * offset(j) * sum_i +
          offset(i) * scale(j) * sum_j + offset(i) * offset(j);
    }
  }
  return result;
}

Eigen symmetric_eigen(std::span<const double> matrix, int n) {
  std::vector<double> a(matrix.begin(), matrix.end()), v(a.size(), 0.0);
  for (int i = 0; i < n; ++i) v[i * n + i] = 1;
  const double norm = std::inner_product(a.begin(), a.end(), a.begin(), 0.0);
  for (int sweep = 0; sweep < kMaxSweeps && off_diagonal(a, n) > 1e-30 * norm; ++sweep) {
    for (int p = 0; p < n; ++p) {
      for (int q = p + 1; q < n; ++q) rotate(a, v, n, p, q);
    }
  }
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int i, int j) { return a[i * n + i] > a[j * n + j]; });
  Eigen result;
  for (const int i : order) {
    result.values.push_back(a[i * n + i]);
    result.vectors.insert(result.vectors.end(), v.begin() + i * n, v.begin() + (i + 1) * n);
  }
  return result;
}

std::vector<float> whitening_filters(const PatchMoments& moments, const std::array<float, 3>& mean,
                                     const std::array<float, 3>& stddev, double epsilon) {
  constexpr int n = PatchMoments::kSize;
  const auto covariance = moments.covariance(mean, stddev);
  const Eigen eigen = symmetric_eigen(covariance, n);
  std::vector<float> filters(2 * n * n);
  for (int i = 0; i < n; ++i) {
    const double scale = 1 / std::sqrt(std::max(eigen.values[i], 0.0) + epsilon);
    for (int j = 0; j < n; ++j) {
      const auto value = static_cast<float>(scale * eigen.vectors[i * n + j]);
      filters[i * n + j] = value;
      filters[(n + i) * n + j] = -value;
    }
  }
  return filters;
}

PatchMoments patch_moments(const Source& source, const AugmentSpec& spec,
                           const DecodeOptions& decode) {
  const int64_t pixels = static_cast<int64_t>(spec.output.width) * spec.output.height;
  const int64_t count = std::min(source.size(), std::max(kImagePixels / pixels, kMinImages));
  Augmenter augmenter(spec, decode);
  std::vector<uint8_t> buffer, row(static_cast<size_t>(pixels) * 3);
  const MutableImageView out{row.data(), spec.output.width, spec.output.height,
                             ptrdiff_t{3} * spec.output.width};
  PatchMoments moments;
  for (int64_t i = 0; i < count; ++i) {
    const SampleId id = i * source.size() / count;
    if (load(source, id, augmenter, buffer, out)) moments.add(out);
  }
  if (moments.patches() == 0) {
    throw std::runtime_error("whitening: none of " + std::to_string(count) + " samples of " +
                             source.root() + " could be read");
  }
  return moments;
}

}  // namespace stoker
