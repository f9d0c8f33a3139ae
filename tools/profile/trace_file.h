// Writes a profiled run for Perfetto (ui.perfetto.dev) and chrome://tracing. Each thread, copy
// stream and device has a track with its spans. Each batch has its own row, from its first file to
// the end of its step, and arrows from track to track. The format is the "JSON Trace Event Format";
// times are in microseconds since the run began.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "tools/profile/profiled_run.h"

namespace stoker {

// Takes the text, piece by piece.
using TraceSink = std::function<void(std::string_view)>;

// `name_of` returns the name of a sample's file. Returns the number of events. Throws what `append`
// throws.
int64_t write_trace(const TraceSink& append, const ProfiledRun& run,
                    const std::function<std::string(SampleId)>& name_of);

}  // namespace stoker
