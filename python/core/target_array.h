// Targets in Python: arrays of a batch or of one sample, and names of types.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/target.h"
#include "python/core/array.h"

namespace stoker::python {

// Returns row-major values at `data`, without a holder: `outer` extents, then those of the column.
Array target_array(const TargetColumn& column, const void* data, DlDevice device,
                   std::vector<int64_t> outer);

// `name` is NumPy's. Throws std::invalid_argument if targets cannot have that type.
TargetType target_type_named(const std::string& name);

}  // namespace stoker::python
