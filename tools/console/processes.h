// The processes of one command, started by torchrun, mpirun or srun. Throws what open_mpi_group()
// and open_nccl_group() throw.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "train/collective/process/launch.h"
#include "train/collective/process/process_group.h"

namespace stoker {

// Calls `work` with the group of all processes, or with null if this is the only one, and returns
// its result. If `work` throws, the other processes get the reason.
int run_in_group(const Launch& launch, const std::vector<std::string>& devices,
                 const std::function<int(ProcessGroup*)>& work);

}  // namespace stoker
