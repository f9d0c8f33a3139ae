#include "train/run/spread.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace stoker {

EvalResult mean_of(std::span<const EvalResult> results) {
  EvalResult mean = results.front();
  const auto count = static_cast<double>(results.size());
  for (const EvalResult& each : results.subspan(1)) {
    mean.top1 += each.top1;
    mean.top5 += each.top5;
    mean.loss += each.loss;
    mean.seconds = std::max(mean.seconds, each.seconds);
    mean.images_per_second += each.images_per_second;
  }
  mean.top1 /= count;
  mean.top5 /= count;
  mean.loss /= count;
  return mean;
}

Spread spread_of(std::span<const double> values) {
  Spread spread;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) spread.mean += value / count;
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  if (values.size() > 1) spread.deviation = std::sqrt(squares / (count - 1));
  const auto [lowest, highest] = std::minmax_element(values.begin(), values.end());
  spread.lowest = *lowest;
  spread.highest = *highest;
  return spread;
}

std::optional<Spread> top1_spread(std::span<const ReplicaFigures> replicas) {
  if (replicas.empty() || !replicas.front().eval) return std::nullopt;
  std::vector<double> values;
  for (const ReplicaFigures& replica : replicas) values.push_back(replica.eval->top1);
  return spread_of(values);
}

}  // namespace stoker
