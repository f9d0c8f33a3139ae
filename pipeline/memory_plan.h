// Bounds of what one worker allocates while it fills rows; the rest of a MemoryPlan is exact.
// Threads: any.
#pragma once

#include <cstdint>

#include "pipeline/augment.h"
#include "pipeline/source/source.h"

namespace stoker {

// Kept between rows, for raw samples and for images that are decoded row by row.
int64_t worker_scratch_bytes(const Source& source, const AugmentSpec& augment,
                             const DecodeOptions& decode);
// In addition, for the time of one image that needs its whole frame at once.
int64_t worker_frame_bytes(const Source& source, const AugmentSpec& augment,
                           const DecodeOptions& decode);

}  // namespace stoker
