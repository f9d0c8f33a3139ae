// Targets as arrays: of a batch, or of one sample.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/source/target.h"
#include "python/core/array.h"

namespace stoker::python {

// Returns row-major values at `data`, without a holder: `outer` extents, then those of the column.
Array target_array(const TargetColumn& column, const void* data, DlDevice device,
                   std::vector<int64_t> outer);

}  // namespace stoker::python
