// The words of a verdict, and which measurement each rests on.
#pragma once

#include "tools/profile/diagnosis.h"

namespace stoker {

// `feed` may be null: it could not be modelled.
void add_evidence(const ProfileMeasurements& profile, const FeedWhatIf* feed, Verdict& verdict);

}  // namespace stoker
