// For whoever reads a whole source in its order.
#pragma once

#include <memory>

#include "pipeline/source.h"

namespace stoker {

// Announces every sample, in order, to a source whose bytes come from afar. Keep the result while
// they are read; it may be null.
std::unique_ptr<LookAhead> look_ahead_in_order(const Source& source);

}  // namespace stoker
