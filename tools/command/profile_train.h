// What `stoker profile -- train ...` runs: the training that the arguments describe, in this
// process. It saves one checkpoint to a folder in `out`, to see what that takes, and removes it.
// Errors: as `stoker train`.
#pragma once

#include "tools/command/profile_feed.h"

namespace stoker {

// argv[0] is "train".
ProfileOutcome profile_train(int argc, char** argv, double seconds, const std::string& out);

}  // namespace stoker
