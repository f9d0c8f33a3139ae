// The recommendations of a verdict: the smallest change of each kind that is enough, and what the
// model predicts with it.
#pragma once

#include "tools/profile/diagnosis.h"

namespace stoker {

// Adds to verdict.recommendations (the best first) and verdict.larger_machine.
void add_recommendations(const ProfileMeasurements& profile, const FeedWhatIf& feed,
                         Verdict& verdict);

}  // namespace stoker
