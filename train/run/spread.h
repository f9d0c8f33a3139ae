// The figures of several models together: of replicas that train independently. Pure; any thread.
#pragma once

#include <optional>
#include <span>

#include "train/train_types.h"

namespace stoker {

// Returns the means over several models; samples and seconds are of one, the rate is of all.
EvalResult mean_of(std::span<const EvalResult> results);

// How a figure differs between replicas.
struct Spread {
  double mean = 0;
  double deviation = 0;  // standard deviation of a sample (n - 1); 0 of a single value
  double lowest = 0, highest = 0;
};
Spread spread_of(std::span<const double> values);  // REQUIRES: not empty
// Returns the spread of the replicas' top-1, if they were evaluated.
std::optional<Spread> top1_spread(std::span<const ReplicaFigures> replicas);

}  // namespace stoker
