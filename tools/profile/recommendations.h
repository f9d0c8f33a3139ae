// What would change a verdict: the least of each change that helps, and what it is predicted to
// bring.
#pragma once

#include "tools/profile/diagnosis.h"

namespace stoker {

// The best first.
void add_recommendations(const ProfileMeasurements& profile, const FeedWhatIf& feed,
                         Verdict& verdict);

}  // namespace stoker
