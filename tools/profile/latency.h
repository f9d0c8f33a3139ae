// Statistics of many durations. Seconds; -1 if nothing was measured.
#pragma once

#include <cstdint>
#include <vector>

namespace stoker {

struct Latency {
  int64_t count = 0;
  double mean = -1, p50 = -1, p90 = -1, p99 = -1, max = -1;
  double cpu_mean = -1;  // CPU time; -1: not measured
};

Latency latency_of(std::vector<double> values);

}  // namespace stoker
