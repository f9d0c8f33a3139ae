// Location, spread and confidence intervals of the repeats of a measurement. Pure functions; any
// thread. REQUIRES, everywhere: at least one value, none of them NaN.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stoker {

// Returns the value below which a share (0 to 1) of the values lies, interpolated linearly between
// neighbours (Hyndman and Fan 1996, type 7).
double quantile(std::vector<double> values, double share);

double median(std::vector<double> values);

// Returns the median of |value - median|. Times 1.4826 it estimates the
// standard deviation of normal noise, as the jitter of tf_cnn_benchmarks does.
double median_deviation(const std::vector<double>& values);

struct Interval {
  double low = 0, high = 0;
  // Probability that the interval covers the true value; lower than requested if there are too few
  // values.
  double confidence = 0;
};

// Returns an interval between two order statistics, for values of any distribution: the number of
// values below the true median is binomial (David and Nagaraja, Order Statistics, 2003, section
// 7.1). It is the narrowest one that is symmetric in ranks and covers with at least `confidence`;
// smallest to largest if none does (fewer than 6 values for 0.95).
Interval median_interval(std::vector<double> values, double confidence = 0.95);

struct Summary {
  int64_t count = 0;
  double median = 0;
  Interval interval;     // of the median
  double deviation = 0;  // median_deviation()
  double min = 0, max = 0;
};

Summary summarise(const std::vector<double>& values);

// Tests whether two sets of repeats differ by more than noise. The methods compare ranks. They
// assume only that repeats are independent and that both sides have similar noise. Pure functions;
// any thread.
//
// Sources: Mann and Whitney 1947 (the test); Hollander, Wolfe and Chicken, Nonparametric
// Statistical Methods, 2014, chapter 4 (the Hodges-Lehmann estimate, Moses' interval, ties);
// Holm 1979 (several tests at once).
struct RankTest {
  double u = 0;       // pairs in which b's value is larger; half a pair for a tie
  double p = 1;       // two-sided
  bool exact = true;  // false: with ties, or many values, by the normal approximation
};

// Runs the two-sided test. REQUIRES: both have values.
RankTest mann_whitney(std::span<const double> a, std::span<const double> b);

// Returns the smallest p that these numbers of repeats can give.
double least_p(int a_count, int b_count);

struct Ratio {
  double value = 1;   // b over a: exp(median of all pairs' log b - log a)
  Interval interval;  // excludes 1 where the test of the same confidence finds a change
};

// Estimates the ratio of b to a with its interval. REQUIRES: all values > 0.
Ratio ratio_of(std::span<const double> a, std::span<const double> b, double confidence = 0.95);

// Adjusts the p values of several tests, so that the level with which each is compared is the
// chance of one false alarm among all of them. Keeps the order.
std::vector<double> holm(const std::vector<double>& p);

}  // namespace stoker
