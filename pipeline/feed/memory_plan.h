// Bounds of the memory that one worker allocates while it fills rows; the rest of a MemoryPlan is
// exact. Threads: any.
#pragma once

#include <cstdint>

#include "pipeline/augment.h"
#include "pipeline/source.h"

namespace stoker {

// Returns the bytes kept between rows, for raw samples and for images that are decoded row by row.
int64_t worker_scratch_bytes(const Source& source, const AugmentSpec& augment,
                             const DecodeOptions& decode);
// Returns the bytes in addition while an image is decoded that needs its whole frame at once.
int64_t worker_frame_bytes(const Source& source, const AugmentSpec& augment,
                           const DecodeOptions& decode);

}  // namespace stoker
