// Parts of a source, several sources as one, and sources with targets, that keep what they show.
// Owner: whoever holds them. Threads: as every Source. Errors: std::invalid_argument with the
// numbers.
#pragma once

#include <memory>
#include <vector>

#include "pipeline/source/target_source.h"

namespace stoker::python {

// As SubsetSource.
std::shared_ptr<const Source> subset(std::shared_ptr<const Source> source,
                                     const std::vector<SampleId>& ids);

// As ConcatSource.
std::shared_ptr<const Source> concat(const std::vector<std::shared_ptr<const Source>>& sources);

// `source` with targets besides its labels (TargetSource). Throws std::invalid_argument.
std::shared_ptr<const Source> with_targets(std::shared_ptr<const Source> source,
                                           std::vector<TargetTable> tables);

}  // namespace stoker::python
