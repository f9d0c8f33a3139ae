// The evidence of a verdict: sentences, each with the measurement that it is based on.
#pragma once

#include "tools/profile/diagnosis.h"

namespace stoker {

// Adds to verdict.evidence and verdict.unknown, and sets verdict.detail. `feed` is null if the feed
// could not be modelled.
void add_evidence(const ProfileMeasurements& profile, const FeedWhatIf* feed, Verdict& verdict);

}  // namespace stoker
