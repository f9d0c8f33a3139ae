// Tests whether two sets of repeats differ by more than noise. The methods compare ranks. They
// assume only that repeats are independent and that both sides have similar noise. Pure functions;
// any thread.
//
// Sources: Mann and Whitney 1947 (the test); Hollander, Wolfe and Chicken, Nonparametric
// Statistical Methods, 2014, chapter 4 (the Hodges-Lehmann estimate, Moses' interval, ties);
// Holm 1979 (several tests at once).
#pragma once

#include <span>
#include <vector>

#include "bench/report/statistics.h"

namespace stoker {

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
