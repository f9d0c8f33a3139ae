// Stamps by which what is kept of samples knows that their bytes have changed.
#pragma once

#include "pipeline/source.h"

namespace stoker {

// Returns Source::stamp(), but an unknown one for an object of a server that gives no versions,
// whose bytes may change without it. Threads: any.
FileStamp version_stamp(const Source& source, SampleId id);

}  // namespace stoker
