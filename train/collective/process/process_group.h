// The processes of a run and how they communicate: everything that stoker needs from MPI, or from
// NCCL if there is no MPI (torchrun, srun), and a few functions on top for the trainer. All
// processes make the same calls in the same order. Owner: the program. Threads: one at a time;
// abort() from any thread at any time. Errors: std::runtime_error, with the message of another
// process's abort() if that came first and can be received.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "train/collective/process/launch.h"

namespace stoker {

class MessageGroup;
class NcclGroup;

class ProcessGroup {
 public:
  using Ticket = int64_t;
  // Without an earlier finish(), the other processes are told that this one has failed.
  virtual ~ProcessGroup() = default;
  virtual int rank() const = 0;  // of this process
  virtual int size() const = 0;  // number of processes

  // Copies root's bytes to all processes.
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;
  // Collects every process's `own`, by rank, in `all`; all have the same size. start_all_gather()
  // only starts this: do not touch the bytes until end_all_gather().
  virtual Ticket start_all_gather(std::span<const std::byte> own, std::span<std::byte> all) = 0;
  virtual void end_all_gather(Ticket ticket) = 0;

  // Makes all calls that wait, now or later, in all processes, fail with `why`; first call wins.
  virtual void abort(const std::string& why) noexcept = 0;
  virtual void finish() = 0;  // orderly end; the last call in every process

  // Return this object if it is of that kind, else null.
  virtual MessageGroup* messages() { return nullptr; }
  virtual NcclGroup* nccl() { return nullptr; }
};

// Processes that can send messages to a single other process at any time: through MPI. Messages
// from one sender to one receiver arrive in the order sent.
class MessageGroup : public ProcessGroup {
 public:
  // Both only start the transfer: do not touch the bytes until wait(). At most 2^31 - 1 bytes; both
  // sides must give the same number.
  virtual Ticket send(int to, std::span<const std::byte> bytes) = 0;
  virtual Ticket receive(int from, std::span<std::byte> bytes) = 0;
  // Yields to other threads while it waits. Call it once per ticket.
  virtual void wait(Ticket ticket) = 0;

  void broadcast(std::span<std::byte> bytes, int root) final;
  Ticket start_all_gather(std::span<const std::byte> own,
                          std::span<std::byte> all) final;  // blocks
  void end_all_gather(Ticket) final {}
  MessageGroup* messages() final { return this; }
};

// Copies root's bytes to all processes.
void broadcast(ProcessGroup& group, std::span<std::byte> bytes, int root = 0);
// Returns the values of all processes by rank, in every process.
std::vector<int64_t> all_gather(ProcessGroup& group, int64_t value);
int64_t all_reduce_max(ProcessGroup& group, int64_t value);
// Returns the bytes of all processes by rank in process 0, and nothing in the others.
std::vector<std::vector<std::byte>> gather(ProcessGroup& group, std::span<const std::byte> bytes);

// Opens the MPI plugin for the processes of `launch`. Throws std::runtime_error with what is
// missing, std::invalid_argument if MPI's rank or size differs from the launcher's.
std::unique_ptr<ProcessGroup> open_mpi_group(const Launch& launch);

}  // namespace stoker
