#include "pipeline/order/alias_table.h"

#include <algorithm>
#include <numeric>

namespace stoker {
namespace {

// Returns how many of the 2^64 sides belong to a column's own number. A whole column lacks the last
// side, which picks the column's alias: itself.
uint64_t count_sides(double share) {
  return share >= 1 ? ~uint64_t{0} : static_cast<uint64_t>(share * 0x1p64);
}

}  // namespace

AliasTable::AliasTable(std::span<const double> weights) {
  const size_t count = weights.size();
  const double largest = *std::max_element(weights.begin(), weights.end());
  // Divided by the largest first: neither the sum nor a share overflows.
  double sum = 0;
  for (const double weight : weights) sum += weight / largest;
  std::vector<double> share(count);  // of the number in its own column, above 1 if it needs others
  std::vector<SampleId> alias(count), small, large;
  for (size_t i = 0; i < count; ++i) {
    share[i] = weights[i] / largest / sum * static_cast<double>(count);
    alias[i] = static_cast<SampleId>(i);
    (share[i] < 1 ? small : large).push_back(static_cast<SampleId>(i));
  }
  while (!small.empty() && !large.empty()) {
    const SampleId poor = small.back(), rich = large.back();
    small.pop_back();
    const auto p = static_cast<size_t>(poor), r = static_cast<size_t>(rich);
    alias[p] = rich;
    share[r] -= 1 - share[p];
    if (share[r] >= 1) continue;
    large.pop_back();
    small.push_back(rich);
  }
  // The columns left over have a share of 1 but for rounding errors, and themselves as alias. (None
  // is of weight 0: the shares of those left add up to their number.)
  own_sides_.reserve(count);
  for (const double each : share) own_sides_.push_back(count_sides(each));
  aliases_ = IdList(alias);
}

}  // namespace stoker
