// The text that is printed before a run, and the text of config.json. Pure.
#pragma once

#include <string>
#include <vector>

#include "train/run/setup.h"

namespace stoker {

// Uses all of `setup` except its plan.
std::vector<std::string> plan_lines(const TrainSetup& setup, const MemoryPlan& eval_feed);
// Returns the options and the plan as JSON.
std::string config_text(const TrainSetup& setup);

}  // namespace stoker
