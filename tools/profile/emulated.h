// Profiles a feed against emulated devices: puts the session, the feed and its consumers together.
// Blocks for the warm-up and about the given seconds. Throws what Loader throws.
#pragma once

#include "pipeline/loader.h"
#include "tools/profile/report.h"

namespace stoker {

struct FeedRun {
  double demand = 0;    // images/s that each device takes
  double seconds = 10;  // SessionOptions::seconds
  int devices = 1;      // emulated devices, in the host's memory
  StorageRates storage;
  Device* device = nullptr;  // not null: only this device is fed instead
};

// `options` are the feed's; its number of workers must be known (not -1).
Profile profile_emulated(const Source& source, const AugmentSpec& augment,
                         const LoaderOptions& options, const FeedRun& how, ProfiledRun& run);

}  // namespace stoker
