// Measures the kernel that turns a batch's bytes into a net's input, for each type, order (NHWC,
// NCHW) and padding of the channels: milliseconds, and GB/s that are read and written together.
#pragma once

#include <string>

#include "bench/report/report.h"

namespace stoker {

struct LayoutOptions {
  std::string device = "cpu:0";
  int rows = 256;
  int size = 224;
  int repeats = 30;
};

// report.results: {"bf16 NHWC, 3 channels": {ms, gb_per_s}, ...}.
Report bench_layout(const LayoutOptions& options);

}  // namespace stoker
