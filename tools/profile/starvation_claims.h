// The words of a verdict, and which measurement each rests on.
#pragma once

#include "tools/profile/starvation_verdict.h"

namespace stoker {

// `feed` may be null: it could not be modelled.
void add_claims(const ProfileMeasurements& profile, const FeedWhatIf* feed, Verdict& verdict);

}  // namespace stoker
