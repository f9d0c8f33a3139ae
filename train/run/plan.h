// What is printed before a run, and what config.json keeps of it. Pure.
#pragma once

#include <string>
#include <vector>

#include "train/run/setup.h"

namespace stoker {

// Of `setup` without its plan.
std::vector<std::string> plan_lines(const TrainSetup& setup, const MemoryPlan& eval_feed);
// The options and the plan, as JSON.
std::string config_text(const TrainSetup& setup);

}  // namespace stoker
