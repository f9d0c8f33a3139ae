#include "bench/report/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

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

namespace {

// The test is exact up to this many pairs (50 repeats on both sides).
constexpr size_t kMaxExactPairs = 2500;

// Returns for each U the share of all orders of a's and b's values that give it. U is the sum over
// b's values of the number of a's values below them, so the counts are those of partitions that fit
// into a box.
std::vector<double> distribution_of_u(size_t a, size_t b) {
  std::vector<double> ways(a * b + 1);
  ways[0] = 1;
  // The Gaussian binomial (a+b choose b), factor by factor: times (1 - q^(a+i)) / (1 - q^i).
  for (size_t i = 1; i <= b; ++i) {
    for (size_t u = ways.size(); u-- > a + i;) ways[u] -= ways[u - a - i];
    for (size_t u = i; u < ways.size(); ++u) ways[u] += ways[u - i];
  }
  const double all = std::accumulate(ways.begin(), ways.end(), 0.0);
  for (double& share : ways) share /= all;
  return ways;
}

double normal_tail(double z) { return 0.5 * std::erfc(z / std::sqrt(2.0)); }

// Finds the z whose tail is `share` (0 to 0.5) by bisection.
double normal_tail_end(double share) {
  double low = 0, high = 40;
  while (high - low > 1e-9) {
    const double middle = (low + high) / 2;
    (normal_tail(middle) > share ? low : high) = middle;
  }
  return high;
}

// Returns the sum of t^3 - t over groups of t equal values of both sides together.
double tie_sum(std::span<const double> a, std::span<const double> b) {
  std::vector<double> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  std::sort(all.begin(), all.end());
  double sum = 0;
  for (size_t begin = 0; begin < all.size();) {
    size_t end = begin;
    while (end < all.size() && all[end] == all[begin]) ++end;
    const auto t = static_cast<double>(end - begin);
    sum += t * t * t - t;
    begin = end;
  }
  return sum;
}

double approximate_p(double u, double a, double b, double ties) {
  const double n = a + b;
  const double variance = a * b / 12 * (n + 1 - ties / (n * (n - 1)));
  if (variance <= 0) return 1;                            // all values are the same
  const double distance = std::abs(u - a * b / 2) - 0.5;  // continuity
  return std::min(1.0, 2 * normal_tail(std::max(0.0, distance) / std::sqrt(variance)));
}

// Returns P(U <= u) of the distribution.
double lower_tail(const std::vector<double>& shares, int64_t u) {
  double sum = 0;
  for (int64_t i = 0; i <= u; ++i) sum += shares[i];
  return sum;
}

}  // namespace

RankTest mann_whitney(std::span<const double> a, std::span<const double> b) {
  RankTest test;
  for (const double x : a) {
    for (const double y : b) test.u += x < y ? 1 : (x == y ? 0.5 : 0);
  }
  const double ties = tie_sum(a, b);
  const size_t pairs = a.size() * b.size();
  test.exact = ties == 0 && pairs <= kMaxExactPairs;
  if (!test.exact) {
    test.p =
        approximate_p(test.u, static_cast<double>(a.size()), static_cast<double>(b.size()), ties);
    return test;
  }
  const double nearer = std::min(test.u, static_cast<double>(pairs) - test.u);
  const auto shares = distribution_of_u(a.size(), b.size());
  test.p = std::min(1.0, 2 * lower_tail(shares, static_cast<int64_t>(nearer)));
  return test;
}

double least_p(int a_count, int b_count) {
  // The most extreme order of the (a + b choose a) on either side.
  const auto of = [](int n) { return std::lgamma(n + 1.0); };
  return std::min(1.0, 2 * std::exp(of(a_count) + of(b_count) - of(a_count + b_count)));
}

Ratio ratio_of(std::span<const double> a, std::span<const double> b, double confidence) {
  std::vector<double> steps;
  steps.reserve(a.size() * b.size());
  for (const double x : a) {
    for (const double y : b) steps.push_back(std::log(y) - std::log(x));
  }
  std::sort(steps.begin(), steps.end());
  const auto pairs = std::ssize(steps);
  int64_t rank = 0;  // of the interval's ends, counted from the outside
  double outside = 0;
  if (steps.size() <= kMaxExactPairs) {
    const auto shares = distribution_of_u(a.size(), b.size());
    outside = 2 * shares[0];
    while (2 * (rank + 2) <= pairs && 1 - (outside + 2 * shares[rank + 1]) >= confidence) {
      outside += 2 * shares[++rank];
    }
  } else {
    const auto m = static_cast<double>(a.size()), n = static_cast<double>(b.size());
    const double deviation = std::sqrt(m * n * (m + n + 1) / 12);
    const double z = normal_tail_end((1 - confidence) / 2);
    rank = std::max<int64_t>(0, std::llround(m * n / 2 - z * deviation));
    outside = 1 - confidence;
  }
  return {std::exp(median(steps)),
          {std::exp(steps[rank]), std::exp(steps[pairs - 1 - rank]), std::max(0.0, 1 - outside)}};
}

std::vector<double> holm(const std::vector<double>& p) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t i, size_t j) { return p[i] < p[j]; });
  std::vector<double> adjusted(p.size());
  double largest = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    largest = std::max(largest, p[order[i]] * static_cast<double>(p.size() - i));
    adjusted[order[i]] = std::min(1.0, largest);
  }
  return adjusted;
}

}  // namespace stoker
