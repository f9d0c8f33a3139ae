// Writes a profiled run for Perfetto (ui.perfetto.dev) and chrome://tracing. Each thread, copy
// stream and device has a track with its spans. Each batch has its own row, from its first file to
// the end of its step, and arrows from track to track. The format is the "JSON Trace Event Format";
// times are in microseconds since the run began.
#pragma once

#include <functional>
#include <string>

#include "tools/profile/profiled_run.h"

namespace stoker {

// `name_of` returns the name of a sample's file. Returns the number of events. Throws
// std::runtime_error with the path if the trace cannot be written.
int64_t write_trace(const std::string& path, const ProfiledRun& run,
                    const std::function<std::string(SampleId)>& name_of);

}  // namespace stoker
