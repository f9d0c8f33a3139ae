#include "python/core/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "python/core/read_stop.h"

namespace stoker::python {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// The worker's end of the socket, as _dataset_worker.py knows it.
constexpr int kWorkerSocket = 3;
// A larger answer is refused by the worker itself.
constexpr uint64_t kMaxAnswerBytes = uint64_t{1} << 30;
// How long a process may take to be gone after its end of the socket has closed.
constexpr auto kProcessEndTime = milliseconds(1000);

// How long a process may take for the answer to a request whose reader has gone away.
constexpr auto kPatience = std::chrono::seconds(3);

std::runtime_error cannot_start(const std::string& why) {
  return std::runtime_error("a worker process of stoker.dataset() cannot be started: " + why);
}

// The steps of posix_spawn() in the new process before the program begins.
class SpawnSettings {
 public:
  explicit SpawnSettings(int worker_socket) {
    posix_spawn_file_actions_init(&files_);
    posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files_, worker_socket, kWorkerSocket);
    posix_spawnattr_init(&attributes_);
    // Ctrl-C goes to all processes of a terminal. Until the worker ignores it, it is held back.
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGINT);
    posix_spawnattr_setsigmask(&attributes_, &blocked);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  // Returns an errno.
  int spawn(const std::vector<std::string>& command, pid_t& process) {
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    return posix_spawn(&process, arguments[0], &files_, &attributes_, arguments.data(), environ);
  }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

template <class Value>
std::span<const uint8_t> bytes_of(const Value& value) {
  return {reinterpret_cast<const uint8_t*>(&value), sizeof value};
}

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

DatasetAnswer bad_answer(const std::string& message, std::vector<uint8_t>& buffer) {
  if (buffer.size() < message.size()) buffer.resize(message.size());
  std::copy(message.begin(), message.end(), buffer.begin());
  return {AnswerKind::bad, kNoLabel, message.size()};
}

}  // namespace

struct WorkerProcess::Died {};

struct WorkerProcess::Header {
  AnswerKind kind;
  int32_t label;
  uint64_t size;
};

WorkerProcess::~WorkerProcess() {
  begin_end();
  finish_end(steady_clock::now() + kProcessEndTime);
}

DatasetAnswer WorkerProcess::ask(SampleId id, std::vector<uint8_t>& buffer) {
  make_ready();
  Header header;
  try {
    state_ = State::owes_answer;
    send(bytes_of(int64_t{id}));
    header = receive_header();
    receive_payload(header, buffer);
  } catch (const Died&) {
    return bad_answer(end_and_tell(), buffer);
  }
  state_ = State::ready;
  return {header.kind, header.label, static_cast<size_t>(header.size)};
}

// Afterwards the process waits for a request. One that died since its last answer is no fault of
// the next sample, and is started again.
void WorkerProcess::make_ready() {
  if (state_ == State::owes_answer) drain();
  if (state_ == State::ready && has_ended()) end_and_tell();
  if (state_ == State::absent) start();
  if (state_ != State::starting) return;
  try {
    std::vector<uint8_t> message;
    const Header header = receive_header();
    receive_payload(header, message);
    if (header.kind == AnswerKind::ready) {
      state_ = State::ready;
      return;
    }
    kill_now();
    throw cannot_start({message.begin(), message.end()});
  } catch (const Died&) {
    throw cannot_start(end_and_tell());
  }
}

void WorkerProcess::start() {
  spawn();
  try {
    for (const std::string* part : {&program_.preparation, &program_.object}) {
      send(bytes_of(uint64_t{part->size()}));
      send(bytes_of(*part));
    }
  } catch (const Died&) {
    throw cannot_start(end_and_tell());
  } catch (...) {
    // The process has a part of the object, which nobody will complete.
    kill_now();
    throw;
  }
  state_ = State::starting;
}

void WorkerProcess::spawn() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw cannot_start(std::string("socketpair: ") + std::strerror(errno));
  }
  const int error = SpawnSettings(ends[1]).spawn(program_.command, process_);
  ::close(ends[1]);
  socket_ = ends[0];
  exit_status_.reset();
  last_process_ = process_;
  if (error == 0) return;
  process_ = -1;
  close_socket();
  throw cannot_start(program_.command[0] + ": " + std::strerror(error));
}

void WorkerProcess::send(std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
      bytes = bytes.subspan(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      wait_for(POLLOUT);
    } else if (errno != EINTR) {
      throw Died();
    }
  }
}

// `part`: of an answer. REQUIRES: not empty.
void WorkerProcess::receive(std::span<uint8_t> bytes, Part part) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = recv(socket_, bytes.data() + done, bytes.size() - done, MSG_DONTWAIT);
    if (got > 0) {
      done += static_cast<size_t>(got);
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      throw Died();
    } else {
      try {
        wait_for(POLLIN);
      } catch (const Died&) {
        throw;
      } catch (...) {
        // The rest of this answer could not be told from the next one.
        if (part == Part::rest || done > 0) kill_now();
        throw;
      }
    }
  }
}

// Returns false after a while, for another try.
bool WorkerProcess::wait_for(short events) {
  pollfd wanted{socket_, events, 0};
  if (poll(&wanted, 1, static_cast<int>(kReadPoll.count())) > 0) return true;
  check_read();
  // Processes that the worker has started may hold its end of the socket open.
  if (has_ended()) throw Died();
  return false;
}

WorkerProcess::Header WorkerProcess::receive_header() {
  Header header;
  receive({reinterpret_cast<uint8_t*>(&header), sizeof header}, Part::first);
  return header;
}

void WorkerProcess::receive_payload(const Header& header, std::vector<uint8_t>& buffer) {
  if (header.kind > AnswerKind::ready || header.size > kMaxAnswerBytes) {
    kill_now();
    throw std::runtime_error("a worker process of stoker.dataset() wrote to file descriptor " +
                             std::to_string(kWorkerSocket) + ", which is not its own");
  }
  const auto size = static_cast<size_t>(header.size);
  try {
    if (buffer.size() < size) buffer.resize(size);
  } catch (...) {
    kill_now();
    throw;
  }
  if (size > 0) receive(std::span(buffer).first(size), Part::rest);
}

// Takes the answer to a request whose reader has gone away. An item that takes very long costs more
// than the start of another process.
void WorkerProcess::drain() {
  const auto until = steady_clock::now() + kPatience;
  try {
    while (!wait_for(POLLIN)) {
      if (steady_clock::now() < until) continue;
      kill_now();
      return;
    }
    std::vector<uint8_t> nowhere;
    receive_payload(receive_header(), nowhere);
    state_ = State::ready;
  } catch (const Died&) {
    end_and_tell();
  }
}

// Afterwards, if it returns true, process_ is -1: the process is gone, and its number may be that
// of another one.
bool WorkerProcess::has_ended() noexcept {
  if (process_ < 0) return true;
  int status = 0;
  const pid_t found = waitpid(process_, &status, WNOHANG);
  if (found == 0 || (found < 0 && errno == EINTR)) return false;
  // A program may collect the ends of all its processes itself.
  if (found == process_) exit_status_ = status;
  process_ = -1;
  return true;
}

std::string WorkerProcess::end_and_tell() noexcept {
  const std::string who = "the worker process " + std::to_string(last_process_);
  begin_end();
  finish_end(steady_clock::now() + kProcessEndTime);
  if (!exit_status_) return who + " ended";
  if (WIFSIGNALED(*exit_status_)) {
    const int signal = WTERMSIG(*exit_status_);
    return who + " was ended by signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
  }
  return who + " ended with exit code " + std::to_string(WEXITSTATUS(*exit_status_));
}

void WorkerProcess::kill_now() noexcept {
  begin_end();
  finish_end({});
}

void WorkerProcess::begin_end() noexcept {
  // Also where a child of the program has a copy of the socket, the worker sees its end.
  if (socket_ >= 0) shutdown(socket_, SHUT_RDWR);
  close_socket();
}

void WorkerProcess::finish_end(steady_clock::time_point deadline) noexcept {
  while (!has_ended()) {
    if (steady_clock::now() >= deadline) {
      kill(process_, SIGKILL);
      deadline = steady_clock::time_point::max();
    }
    std::this_thread::sleep_for(milliseconds(1));
  }
  state_ = State::absent;
}

void WorkerProcess::leave_to_parent() noexcept {
  close_socket();
  process_ = -1;
  state_ = State::absent;
}

void WorkerProcess::close_socket() noexcept {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

}  // namespace stoker::python
