#include "tools/console/processes.h"

#include <cstdio>

#include "train/collective/process/nccl_group.h"

namespace stoker {

int run_in_group(const Launch& launch, const std::vector<std::string>& devices,
                 const std::function<int(ProcessGroup*)>& work) {
  if (launch.world == 1) return work(nullptr);
  const auto processes = meets_through_nccl(launch, devices) ? open_nccl_group(launch, devices)
                                                             : open_mpi_group(launch);
  try {
    const int code = work(processes.get());
    // When one process has ended with an error, a launcher such as torchrun kills the others, and
    // what they have not written yet would be lost.
    std::fflush(nullptr);
    processes->finish();
    return code;
  } catch (const std::exception& error) {
    processes->abort(error.what());  // the others would wait for this one forever
    throw;
  }
}

}  // namespace stoker
