// What a Loader refuses. Throws std::invalid_argument with the field and the numbers.
#pragma once

#include <vector>

#include "pipeline/loader.h"

namespace stoker {

void validate(const LoaderOptions& options, const std::vector<Device*>& devices);

}  // namespace stoker
