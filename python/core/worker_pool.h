// Runs an object's __getitem__ in worker processes: as many samples are read at once as there are
// processes. They start when they are needed, and again when one has died. After fork() the child
// starts its own. Owner, threads, errors: as DatasetReader.
#pragma once

#include <memory>

#include "python/core/dataset_reader.h"
#include "python/core/worker_process.h"

namespace stoker::python {

std::shared_ptr<DatasetReader> make_worker_pool(WorkerProgram program, int workers);

}  // namespace stoker::python
