// The recommendations of a verdict: of each kind of change that helps, the smallest one that is
// enough, and what the model predicts with it.
#pragma once

#include "tools/profile/diagnosis.h"

namespace stoker {

// Adds to verdict.recommendations (the best first) and verdict.larger_machine.
void add_recommendations(const ProfileMeasurements& profile, const FeedWhatIf& feed,
                         Verdict& verdict);

}  // namespace stoker
