#include "python/core/worker_pool.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <thread>

#include "pipeline/files/file_buffer.h"
#include "python/core/read_stop.h"
#include "staging/mutex.h"

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
  extend_file_buffer(buffer, message.size());
  std::copy(message.begin(), message.end(), buffer.begin());
  return {AnswerKind::bad, kNoLabel, message.size()};
}

// One process that runs an object's __getitem__ (python/stoker/_dataset_worker.py), and the socket
// to it. Owner: Team. Threads: one at a time; nothing here holds Python's lock. Errors: what a
// sample's code does is an answer of kind `bad`, and so is the death of the process meanwhile; a
// process that cannot be started is a std::runtime_error.
//
// A request is an id, and its answer a header and a payload, which is read straight into the
// caller's buffer. There is at most one request under way, so neither side can block the other.
// An exception of check_read() ends a wait: then the process keeps its request, and the next one
// waits for that answer first, for some seconds.
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
    extend_file_buffer(buffer, size);
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

using WorkerList = std::vector<std::unique_ptr<WorkerProcess>>;

constexpr auto kTeamEndTime = std::chrono::seconds(1);

// The processes of one process: of the program, or of a child that it made by fork().
class Team {
 public:
  Team(const WorkerProgram& program, int workers) : program_(program), owner_(getpid()) {
    for (int i = 0; i < workers; ++i) {
      idle_.push_back(std::make_unique<WorkerProcess>(program_));
      all_.push_back(idle_.back().get());
    }
  }
  bool is_mine() const { return owner_ == getpid(); }

  std::unique_ptr<WorkerProcess> take() {
    for (;;) {
      if (auto worker = take_idle()) return worker;
      check_read();
    }
  }

  void give_back(std::unique_ptr<WorkerProcess> worker) {
    {
      MutexLock lock(mutex_);
      idle_.push_back(std::move(worker));
    }
    given_back_.notify_one();
  }

  // Ends the processes that nobody waits for; all of them at once.
  void end_idle() {
    WorkerList workers;
    {
      MutexLock lock(mutex_);
      workers.swap(idle_);
    }
    const auto deadline = steady_clock::now() + kTeamEndTime;
    for (auto& worker : workers) worker->begin_end();
    for (auto& worker : workers) worker->finish_end(deadline);
    for (auto& worker : workers) give_back(std::move(worker));
  }

  // In a child made by fork(). Another thread of the parent may have had the lock, so it is not
  // taken: the list of all workers never changes.
  void leave_to_parent() {
    for (WorkerProcess* worker : all_) worker->leave_to_parent();
  }

 private:
  // Waits a while; null if all are busy. Of several it takes the one that can begin first.
  std::unique_ptr<WorkerProcess> take_idle() {
    const auto until = steady_clock::now() + kReadPoll;
    MutexLock lock(mutex_);
    while (idle_.empty()) {
      if (!given_back_.wait_until(lock, until)) return nullptr;
    }
    const auto best =
        std::min_element(idle_.begin(), idle_.end(),
                         [](const auto& a, const auto& b) { return a->state() < b->state(); });
    auto worker = std::move(*best);
    idle_.erase(best);
    return worker;
  }

  const WorkerProgram& program_;
  const pid_t owner_;
  std::vector<WorkerProcess*> all_;
  Mutex mutex_;
  CondVar given_back_;
  WorkerList idle_ GUARDED_BY(mutex_);
};

class WorkerPool final : public DatasetReader {
 public:
  WorkerPool(WorkerProgram program, int workers)
      : program_(std::move(program)), workers_(workers), team_(new Team(program_, workers)) {}
  ~WorkerPool() override {
    Team* const team = team_;
    if (!team->is_mine()) {
      team->leave_to_parent();
      return;
    }
    team->end_idle();
    delete team;
  }

  DatasetAnswer read(SampleId id, std::vector<uint8_t>& buffer) override {
    Team& team = my_team();
    Turn turn{team, team.take()};
    return turn.worker->ask(id, buffer);
  }

 private:
  struct Turn {
    ~Turn() { team.give_back(std::move(worker)); }
    Team& team;
    std::unique_ptr<WorkerProcess> worker;
  };

  void end_idle() noexcept override {
    Team* const team = team_;
    if (team->is_mine()) team->end_idle();
  }

  Team& my_team() {
    Team* team = team_;
    if (team->is_mine()) return *team;
    auto own = std::make_unique<Team>(program_, workers_);
    // The parent's is left as it is, but for its sockets: it may be in the middle of anything.
    if (team_.compare_exchange_strong(team, own.get())) {
      team->leave_to_parent();
      return *own.release();
    }
    return *team;
  }

  const WorkerProgram program_;
  const int workers_;
  std::atomic<Team*> team_;
};

}  // namespace

std::shared_ptr<DatasetReader> make_worker_pool(WorkerProgram program, int workers) {
  return std::make_shared<WorkerPool>(std::move(program), workers);
}

}  // namespace stoker::python
