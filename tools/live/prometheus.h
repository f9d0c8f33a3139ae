// A run's status in Prometheus' text format 0.0.4. A pure function.
#pragma once

#include <string>

#include "tools/live/status.h"

namespace stoker {

// Counters end in _total, units are seconds and bytes; a figure that is unknown has no sample.
std::string prometheus_text(const LiveStatus& status);

}  // namespace stoker
