// The processes of a run and what they say to each other: all that stoker asks of MPI, or of NCCL
// where no MPI is around the processes (torchrun, srun). A few functions for what the trainer says
// with them follow; all processes make the same calls in the same order. Owner: the program.
// Threads: one at a time; abort() from any at any time. Errors: std::runtime_error; the message of
// another process's abort() where that came first and can be heard.
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
  // Without a finish() before, the other processes are told that this one has failed.
  virtual ~ProcessGroup() = default;
  virtual int rank() const = 0;  // of this process
  virtual int size() const = 0;  // processes

  // root's bytes, everywhere.
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;
  // `all` becomes everybody's `own`, by rank; as many bytes from each. The first call starts only:
  // all bytes are to be left alone until the second.
  virtual Ticket start_all_gather(std::span<const std::byte> own, std::span<std::byte> all) = 0;
  virtual void end_all_gather(Ticket ticket) = 0;

  // All processes that wait, now or later, fail with `why`; the first call counts.
  virtual void abort(const std::string& why) noexcept = 0;
  virtual void finish() = 0;  // in good order; the last call, on every process

  // This one, where it is of that kind; else null.
  virtual MessageGroup* messages() { return nullptr; }
  virtual NcclGroup* nccl() { return nullptr; }
};

// Processes that can say something to one other alone, at any time: through MPI. Messages of one
// sender to one receiver arrive in the order sent.
class MessageGroup : public ProcessGroup {
 public:
  // Both start only; the bytes are to be left alone until wait(). At most 2^31 - 1 bytes, as many
  // as are sent.
  virtual Ticket send(int to, std::span<const std::byte> bytes) = 0;
  virtual Ticket receive(int from, std::span<std::byte> bytes) = 0;
  // Gives the processor to other threads while it waits. Each ticket once.
  virtual void wait(Ticket ticket) = 0;

  void broadcast(std::span<std::byte> bytes, int root) final;
  Ticket start_all_gather(std::span<const std::byte> own,
                          std::span<std::byte> all) final;  // blocks
  void end_all_gather(Ticket) final {}
  MessageGroup* messages() final { return this; }
};

// root's bytes, everywhere.
void broadcast(ProcessGroup& group, std::span<std::byte> bytes, int root = 0);
// Everybody's value, by rank, at every process.
std::vector<int64_t> all_gather(ProcessGroup& group, int64_t value);
int64_t all_reduce_max(ProcessGroup& group, int64_t value);
// Everybody's bytes, by rank, at process 0; nothing elsewhere.
std::vector<std::vector<std::byte>> gather(ProcessGroup& group, std::span<const std::byte> bytes);

// The processes that `launch` found, through MPI: a plugin, opened here. Throws
// std::runtime_error with what is missing, std::invalid_argument where MPI counts other processes.
std::unique_ptr<ProcessGroup> open_mpi_group(const Launch& launch);

}  // namespace stoker
