// Finds this process's rank and the number of processes in the environment variables of torchrun,
// mpirun and srun: a pure function of the environment. Only variables that a launcher sets for each
// process count, so a shell inside an allocation, or a command of a batch script, is a single
// process. Threads: any. Errors: std::invalid_argument with the variables and their values, if they
// are incomplete, impossible or contradictory.
#pragma once

#include <map>
#include <string>

namespace stoker {

using Environment = std::map<std::string, std::string>;

struct Launch {
  int rank = 0;        // of this process, 0 .. world - 1
  int world = 1;       // processes
  int local_rank = 0;  // among those on this machine
  int local_world = 1;
  std::string by;              // "torchrun", "mpirun", "mpiexec", "srun"; "": none, world is 1
  std::string master_address;  // torchrun's MASTER_ADDR, or ""
  int master_port = 0;         // MASTER_PORT, or 0
  // The address at which processes on GPUs without MPI meet, in NCCL's form ("host:port"):
  // NCCL_COMM_ID, or MASTER_ADDR with the port after MASTER_PORT (torchrun itself may listen on
  // MASTER_PORT), or "".
  std::string meeting_address;
  std::string note;  // a warning for the user, or ""
};

// Looks for, in this order: torchrun (RANK, WORLD_SIZE), Open MPI's mpirun (OMPI_COMM_WORLD_RANK),
// mpiexec of MPICH and Intel MPI (PMI_RANK), srun (SLURM_PROCID of a step). RANK and WORLD_SIZE
// must agree with the outer launcher, unless that launcher started torchrun itself
// (TORCHELASTIC_RUN_ID).
Launch find_launch(const Environment& environment);

Environment process_environment();

}  // namespace stoker
