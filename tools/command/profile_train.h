// The training that `stoker profile -- train ...` runs, in this process. It saves one checkpoint to
// a folder in `out`, to time it, and removes it. Throws what `stoker train` throws.
#pragma once

#include "tools/command/profile_feed.h"

namespace stoker {

// argv[0] is "train".
ProfileOutcome profile_train(int argc, char** argv, double seconds, const std::string& out);

}  // namespace stoker
