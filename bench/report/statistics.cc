#include "bench/report/statistics.h"

#include <algorithm>
#include <cmath>

namespace stoker {
namespace {

double sorted_quantile(const std::vector<double>& sorted, double share) {
  const double position = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  if (below + 1 >= sorted.size()) return sorted.back();
  const double part = position - static_cast<double>(below);
  return sorted[below] + part * (sorted[below + 1] - sorted[below]);
}

// Returns P(exactly k of n fair coins show heads).
double coin_share(int64_t n, int64_t k) {
  const auto of = [](int64_t x) { return std::lgamma(static_cast<double>(x) + 1); };
  return std::exp(of(n) - of(k) - of(n - k) - static_cast<double>(n) * std::log(2.0));
}

}  // namespace

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return sorted_quantile(values, share);
}

double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

double median_deviation(const std::vector<double>& values) {
  const double middle = median(values);
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) distances.push_back(std::abs(value - middle));
  return median(std::move(distances));
}

Interval median_interval(std::vector<double> values, double confidence) {
  std::sort(values.begin(), values.end());
  const int64_t n = std::ssize(values);
  double outside = 2 * coin_share(n, 0);  // chance that the interval of rank 1 misses
  int64_t rank = 1;
  while (2 * (rank + 1) <= n) {  // does the next one still cover?
    const double wider = outside + 2 * coin_share(n, rank);
    if (1 - wider < confidence) break;
    outside = wider;
    ++rank;
  }
  return {values[rank - 1], values[n - rank], std::max(0.0, 1 - outside)};
}

Summary summarise(const std::vector<double>& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return {std::ssize(values),       median(values), median_interval(values),
          median_deviation(values), *least,         *most};
}

}  // namespace stoker
