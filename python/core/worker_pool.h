// Runs an object's __getitem__ in worker processes: as many samples are read at once as there are
// processes. They start when they are needed, and again when one has died. After fork() the child
// starts its own. Owner, threads, errors: as DatasetReader.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "python/core/dataset_source.h"

namespace stoker::python {

struct WorkerProgram {
  std::vector<std::string> command;  // [0]: the program's path
  std::string preparation, object;   // pickles, for the worker
};

std::shared_ptr<DatasetReader> make_worker_pool(WorkerProgram program, int workers);

}  // namespace stoker::python
