// A feed, profiled against emulated devices: the session, the feed and its consumers put together.
// Blocks for about the seconds given and the warm-up. Throws what Loader throws.
#pragma once

#include "pipeline/loader.h"
#include "tools/profile/report.h"

namespace stoker {

struct FeedRun {
  double demand = 0;    // images/s that each device takes
  double seconds = 10;  // SessionOptions::seconds
  int devices = 1;      // how many are emulated, in the host's memory
  StorageRates storage;
  Device* device = nullptr;  // not null: this device alone is fed instead
};

// `options` are the feed's; its workers must be counted (not -1).
Profile profile_emulated(const Source& source, const AugmentSpec& augment,
                         const LoaderOptions& options, const FeedRun& how, ProfiledRun& run);

}  // namespace stoker
