#include <algorithm>
#include <set>

#include "train/collective/cuda/collective.h"

namespace stoker {

ReduceKind best_reduction(std::span<const int> ordinals, bool several_processes) {
  const std::set<int> different(ordinals.begin(), ordinals.end());
  if (!several_processes && different.size() == 1) return ReduceKind::device;
  if (different.size() == ordinals.size()) return ReduceKind::nccl;
  return ReduceKind::host;
}

}  // namespace stoker
