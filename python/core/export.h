// Exports arrays to other libraries: DLPack capsules and NumPy's array interface. Threads: with
// Python's lock held; the deleters of exported objects need no lock.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

#include "python/core/array.h"

namespace stoker::python {

struct DlpackRequest {
  std::optional<int64_t> stream;                   // numbers as in the array API standard
  std::optional<std::pair<int, int>> max_version;  // none: a capsule without a version
  std::optional<std::pair<int, int>> device;       // none: the array's device
  std::optional<bool> copy;                        // none: only if necessary
};

// Throws nanobind's BufferError for a device or copy that is not supported, std::invalid_argument
// for a stream that does not fit the device.
nanobind::object to_dlpack(const Array& array, const DlpackRequest& request);

// Throws TypeError for memory that is not on the host, and for bfloat16, which NumPy lacks.
nanobind::dict array_interface(const Array& array);

}  // namespace stoker::python
