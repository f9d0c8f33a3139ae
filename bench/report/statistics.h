// Location, spread and confidence intervals of the repeats of a measurement. Pure functions; any
// thread. REQUIRES, everywhere: at least one value, none of them NaN.
#pragma once

#include <cstdint>
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

}  // namespace stoker
