// Keeps a Python object for C++ code that drops it on any thread, with Python's lock or without.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

namespace stoker::python {

// The object is released under Python's lock, which is taken where it is not held; or never, if the
// interpreter ends before. REQUIRES: the lock, for the call itself.
std::shared_ptr<const void> keep_object(nanobind::object object);

}  // namespace stoker::python
