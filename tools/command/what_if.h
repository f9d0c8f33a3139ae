// `stoker plan --what-if`: which other way to feed GPUs is cheapest. Each is measured on a part of
// the user's own samples, or derived from what was measured there. Throws std::invalid_argument
// that names the option, and what measure_full_feed() throws.
#pragma once

#include <string>
#include <vector>

#include "bench/suite/feed_parts.h"
#include "tools/command/machine_plan.h"

namespace CLI {
class App;
}  // namespace CLI

namespace stoker {

struct WhatIfChoice {
  std::vector<std::string> alternatives;  // "all", "pack=512", ...
  std::vector<std::string> prices;        // "0.04", "xeon-amx=0.05"
};

void add_what_if_options(CLI::App& app, WhatIfChoice& choice);
void check_what_if(const CLI::App& app, const WhatIfChoice& choice);

// Adds a table, the cheapest first, and results.what_if to a plan. Each measurement takes `seconds`
// and its warm-up. Files are written to a temporary folder.
void add_what_if(const WhatIfChoice& choice, const FeedWork& work, const PlanDemand& demand,
                 double seconds, Report& report);

}  // namespace stoker
