// Shared by the tests of orders.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/sample_order.h"

namespace stoker {

inline std::vector<OrderedSample> epoch_of(const SampleOrder& order, uint64_t seed, int64_t epoch) {
  const EpochKey key(seed, epoch);
  std::vector<OrderedSample> samples;
  for (int64_t p = 0; p < order.length(); ++p) samples.push_back(order.at(key, p));
  return samples;
}

}  // namespace stoker
