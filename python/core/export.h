// Arrays to other libraries: DLPack capsules and NumPy's array interface. Threads: with Python's
// lock held; the deleters of what was handed out need none.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

#include "python/core/array.h"

namespace stoker::python {

struct DlpackRequest {
  std::optional<int64_t> stream;                   // as the array API standard counts them
  std::optional<std::pair<int, int>> max_version;  // none: a capsule without a version
  std::optional<std::pair<int, int>> device;       // none: where the array is
  std::optional<bool> copy;                        // none: only if it must
};

// Throws nanobind's BufferError for a device or copy that cannot be had, std::invalid_argument for
// a stream that does not fit the device.
nanobind::object to_dlpack(const Array& array, const DlpackRequest& request);

// Throws TypeError for memory that is not on the host, and for bfloat16, which NumPy has not.
nanobind::dict array_interface(const Array& array);

}  // namespace stoker::python
