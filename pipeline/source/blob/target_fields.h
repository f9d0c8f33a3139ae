// Reads SourceOptions::targets_from. A function of its arguments alone. Threads: any.
#pragma once

#include <string>
#include <vector>

#include "pipeline/source/blob/blob_set.h"
#include "pipeline/source/format/sample_sink.h"

namespace stoker {

// Each is a field, and perhaps a colon and the name of a type. A field that ends in such a name
// itself takes a second one. Throws std::invalid_argument for an empty field, a NUL, and a name
// that comes twice.
std::vector<TargetField> target_fields(const std::vector<std::string>& targets_from,
                                       BlobFormat format);

}  // namespace stoker
