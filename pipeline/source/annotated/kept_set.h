// Keeps the set that was made from a file in the cache directory, as long as the file has its size
// and times. Threads: any. Errors: std::runtime_error "PATH: ...".
#pragma once

#include <functional>
#include <string>

#include "pipeline/source/annotated/annotation_set.h"

namespace stoker {

// Returns the kept set of the file at `path`, or what `make` makes of it; errors of `make` get the
// path. `cache_dir`: "" keeps nothing.
SharedAnnotations keep_set(const std::string& path, const std::string& cache_dir,
                           const std::function<AnnotationSetBuilder()>& make);

}  // namespace stoker
