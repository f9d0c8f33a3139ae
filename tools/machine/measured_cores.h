// Cores on which this project has measured the same work: a random-resized crop of 224 px and a
// flip of the same 300 JPEGs of ImageNet, decoded by `stoker fast` on one core, without a seek
// index. The median of seven rounds, as the file says it.
#pragma once

#include <span>
#include <string_view>

namespace stoker {

struct MeasuredCore {
  std::string_view name;  // on the command line
  std::string_view cpu;   // as HostInfo::cpu
  double image_us = 0;    // CPU time
  std::string_view source;
};

inline constexpr MeasuredCore kMeasuredCores[] = {
    {"epyc-avx512", "AMD EPYC", 278, "bench/results/peers.json"},
    {"xeon-amx", "Intel(R) Xeon(R) Processor", 506, "bench/results/peers_intel.json"},
};

}  // namespace stoker
