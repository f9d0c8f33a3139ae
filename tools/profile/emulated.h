// A feed, profiled against emulated devices: the session, the feed and its consumers put together.
// Blocks for about the seconds given and the warm-up. Throws what Loader throws.
#pragma once

#include "pipeline/loader.h"
#include "tools/profile/report.h"

namespace stoker {

struct FeedRun {
  double demand = 0;    // images/s of each device
  double seconds = 10;  // SessionOptions
  int devices = 1;      // emulated ones, in the host's memory
  StorageRates storage;
  Device* device = nullptr;  // this one alone, instead
};

// `options` are the feed's; its workers must be counted (not -1).
Profile profile_emulated(const Source& source, const AugmentSpec& augment,
                         const LoaderOptions& options, const FeedRun& how, ProfiledRun& run);

}  // namespace stoker
