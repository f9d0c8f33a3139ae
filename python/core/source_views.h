// Parts of a source, and several sources as one, that keep what they show. Owner: whoever holds
// them. Threads: as every Source. Errors: std::invalid_argument with the numbers.
#pragma once

#include <memory>
#include <vector>

#include "pipeline/source/source.h"

namespace stoker::python {

// As SubsetSource.
std::shared_ptr<const Source> subset(std::shared_ptr<const Source> source,
                                     const std::vector<SampleId>& ids);

// As ConcatSource.
std::shared_ptr<const Source> concat(const std::vector<std::shared_ptr<const Source>>& sources);

}  // namespace stoker::python
