// A profiled run for Perfetto (ui.perfetto.dev) and chrome://tracing: a track per thread, copy
// stream and device with its spans, and per batch a row of its own from its first file to the end
// of its step, with arrows between the tracks: a batch is followed by its number. The "JSON Trace
// Event Format"; times in microseconds since the run began.
#pragma once

#include <functional>
#include <string>

#include "tools/profile/profiled_run.h"

namespace stoker {

// `name_of` names the file of a sample. Throws std::runtime_error with the path if it cannot be
// written. Returns the number of events.
int64_t write_trace(const std::string& path, const ProfiledRun& run,
                    const std::function<std::string(SampleId)>& name_of);

}  // namespace stoker
