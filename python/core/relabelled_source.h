// A source with other labels; everything else is the same. Owner: whoever holds it; it keeps the
// original source. Threads: as every Source.
#pragma once

#include <memory>
#include <vector>

#include "pipeline/source.h"

namespace stoker::python {

// `labels`: one per sample. Throws std::invalid_argument with the numbers if the count differs.
std::shared_ptr<const Source> relabel(std::shared_ptr<const Source> source,
                                      std::vector<int32_t> labels,
                                      std::vector<std::string> class_names);

}  // namespace stoker::python
