// Which process of how many this is, as torchrun, mpirun and srun say it in the environment: a pure
// function of that. Only what a launcher sets for each process it starts counts, so a shell inside
// an allocation, or a batch script's own commands, train alone. Threads: any. Errors:
// std::invalid_argument with the variables and their values, where they are incomplete, impossible
// or contradict each other.
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
  std::string by;              // "torchrun", "mpirun", "mpiexec", "srun"; "": nobody, world is 1
  std::string master_address;  // torchrun's MASTER_ADDR; ""
  int master_port = 0;         // MASTER_PORT; 0
  // Where processes on GPUs meet that no MPI brings together, as NCCL reads it ("host:port"):
  // NCCL_COMM_ID, or MASTER_ADDR with the port after MASTER_PORT, on which torchrun itself may
  // listen; "".
  std::string meeting_address;
  std::string note;  // what the user may have meant otherwise; ""
};

// In this order: torchrun (RANK, WORLD_SIZE), Open MPI's mpirun (OMPI_COMM_WORLD_RANK), mpiexec of
// MPICH and Intel MPI (PMI_RANK), srun (SLURM_PROCID of a step). RANK and WORLD_SIZE must agree
// with the launcher around them, unless torchrun itself (TORCHELASTIC_RUN_ID) was started by it.
Launch find_launch(const Environment& environment);

Environment process_environment();

}  // namespace stoker
