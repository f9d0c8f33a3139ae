// The processes of one command, as torchrun, mpirun or srun have started them. Errors: what
// open_mpi_group() and open_nccl_group() throw.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "train/collective/process/launch.h"
#include "train/collective/process/process_group.h"

namespace stoker {

// Calls `work` with the group of all processes, or with null where this is the only one; returns
// what it returns. Where it throws, the others are told why.
int run_in_group(const Launch& launch, const std::vector<std::string>& devices,
                 const std::function<int(ProcessGroup*)>& work);

}  // namespace stoker
