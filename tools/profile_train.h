// What `stoker profile -- train ...` runs: the training that the arguments describe, in this
// process, without saving anything. Errors: as `stoker train`.
#pragma once

#include "tools/profile_feed.h"

namespace stoker {

// argv[0] is "train".
ProfileOutcome profile_train(int argc, char** argv, double seconds);

}  // namespace stoker
