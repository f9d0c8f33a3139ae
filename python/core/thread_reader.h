// Runs an object's __getitem__ on the thread that reads, with Python's lock for that call alone.
// Owner, threads, errors: as DatasetReader.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "python/core/dataset_reader.h"

namespace stoker::python {

// `answer`: a function of an id that returns (kind, label, parts), as in
// python/stoker/_dataset_worker.py. REQUIRES: Python's lock.
std::shared_ptr<DatasetReader> make_thread_reader(nanobind::object answer);

}  // namespace stoker::python
