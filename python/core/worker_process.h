// One process that runs an object's __getitem__ (python/stoker/_dataset_worker.py), and the socket
// to it. Owner: WorkerPool. Threads: one at a time; nothing here holds Python's lock. Errors: what
// a sample's code does is an answer of kind `bad`, and so is the death of the process meanwhile; a
// process that cannot be started is a std::runtime_error.
//
// A request is an id, and its answer a header and a payload, which is read straight into the
// caller's buffer. There is at most one request under way, so neither side can block the other.
// An exception of check_read() ends a wait: then the process keeps its request, and the next one
// waits for that answer first, for some seconds.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "python/core/dataset_reader.h"

namespace stoker::python {

struct WorkerProgram {
  std::vector<std::string> command;  // [0]: the program's path
  std::string preparation, object;   // pickles, for the worker
};

class WorkerProcess {
 public:
  // `program` outlives this. Nothing is started before it is needed.
  explicit WorkerProcess(const WorkerProgram& program) : program_(program) {}
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  DatasetAnswer ask(SampleId id, std::vector<uint8_t>& buffer);

  // How long the next ask() would wait before its request can be sent: the less, the better.
  enum class State : uint8_t { ready, starting, absent, owes_answer };
  State state() const { return state_; }

  // Ends the process at once, if there is one: it sees the end of the socket. Does not wait.
  void begin_end() noexcept;
  // Waits for the process to be gone, and kills it when `deadline` has passed.
  void finish_end(std::chrono::steady_clock::time_point deadline) noexcept;
  // In a child made by fork(): closes the copy of the parent's socket.
  void leave_to_parent() noexcept;

 private:
  struct Died;  // thrown: the other end of the socket is gone
  struct Header;

  void start();
  void spawn();
  void make_ready();
  void send(std::span<const uint8_t> bytes);
  enum class Part : uint8_t { first, rest };
  void receive(std::span<uint8_t> bytes, Part part);
  bool wait_for(short events);
  Header receive_header();
  void receive_payload(const Header& header, std::vector<uint8_t>& buffer);
  void drain();
  bool has_ended() noexcept;
  std::string end_and_tell() noexcept;
  void kill_now() noexcept;
  void close_socket() noexcept;

  const WorkerProgram& program_;
  State state_ = State::absent;
  pid_t process_ = -1;  // until its end has been seen
  pid_t last_process_ = -1;
  int socket_ = -1;
  std::optional<int> exit_status_;  // of waitpid(), once it was called
};

}  // namespace stoker::python
