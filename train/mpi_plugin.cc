// libstoker_mpi.so: ProcessGroup over MPI, the only file that sees it. All MPI calls are short ones
// under one mutex (MPI_THREAD_SERIALIZED): waiting is testing, with pauses, so that a waiting
// process leaves its core to the decoders, hears another one's failure, and can be aborted.
#include "train/mpi_plugin.h"

#include <dlfcn.h>
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <unordered_map>

namespace stoker {
namespace {

constexpr int kDataTag = 1, kAbortTag = 2;
constexpr int kEagerTests = 200;  // before pauses begin
constexpr auto kPause = std::chrono::microseconds(50);
constexpr auto kHearing = std::chrono::seconds(5);  // for the others to hear of a failure, at most,
constexpr auto kSaying = std::chrono::seconds(1);   // and to say it before the launcher ends them

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw std::runtime_error(std::string("MPI: ") + what + ": " + std::string(text, length));
}

class MpiGroup final : public MessageGroup {
 public:
  MpiGroup() {
    int provided = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
    if (provided < MPI_THREAD_SERIALIZED) {
      throw std::runtime_error("MPI: this library was built without support for threads");
    }
    check(MPI_Comm_dup(MPI_COMM_WORLD, &world_), "MPI_Comm_dup");
    MPI_Comm_set_errhandler(world_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(world_, &rank_);
    MPI_Comm_size(world_, &size_);
  }
  ~MpiGroup() override {
    if (!finished_) abort("it left before the end");
  }
  MpiGroup(const MpiGroup&) = delete;
  MpiGroup& operator=(const MpiGroup&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Ticket send(int to, std::span<const std::byte> bytes) override {
    MPI_Request request;
    const std::lock_guard lock(mutex_);
    check(MPI_Isend(bytes.data(), count(bytes.size()), MPI_BYTE, to, kDataTag, world_, &request),
          "MPI_Isend");
    return keep(request);
  }
  Ticket receive(int from, std::span<std::byte> bytes) override {
    MPI_Request request;
    const std::lock_guard lock(mutex_);
    check(MPI_Irecv(bytes.data(), count(bytes.size()), MPI_BYTE, from, kDataTag, world_, &request),
          "MPI_Irecv");
    return keep(request);
  }

  void wait(Ticket ticket) override {
    for (int tests = 0;; ++tests) {
      if (test(ticket)) return;
      if (tests < kEagerTests) {
        sched_yield();
      } else {
        std::this_thread::sleep_for(kPause);
      }
    }
  }

  void abort(const std::string& why) noexcept override {
    try {
      const std::lock_guard lock(mutex_);
      if (!failure_.empty()) return;
      failure_ = "process " + std::to_string(rank_) + " of " + std::to_string(size_) + " (" +
                 host_name() + ") failed: " + why;
      tell_all();
    } catch (...) {  // the launcher ends the others when this process is gone
    }
  }

  void finish() override {
    finished_ = true;
    check(MPI_Finalize(), "MPI_Finalize");
  }

 private:
  static int count(size_t bytes) {
    if (bytes > INT_MAX) throw std::runtime_error("MPI: a message of 2 GiB or more");
    return static_cast<int>(bytes);
  }
  Ticket keep(MPI_Request request) {  // REQUIRES: mutex_ held, as all below
    requests_[next_] = request;
    return next_++;
  }

  bool test(Ticket ticket) {
    const std::lock_guard lock(mutex_);
    hear();
    int done = 0;
    check(MPI_Test(&requests_.at(ticket), &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done) {
      requests_.erase(ticket);
      return true;
    }
    if (!failure_.empty()) throw std::runtime_error(failure_);
    return false;
  }

  // Takes in another process's failure, if there is one.
  void hear() {
    if (!failure_.empty()) return;
    int there = 0;
    MPI_Status status;
    check(MPI_Iprobe(MPI_ANY_SOURCE, kAbortTag, world_, &there, &status), "MPI_Iprobe");
    if (!there) return;
    int length = 0;
    MPI_Get_count(&status, MPI_CHAR, &length);
    std::string text(static_cast<size_t>(length), '\0');
    check(MPI_Recv(text.data(), length, MPI_CHAR, status.MPI_SOURCE, kAbortTag, world_, &status),
          "MPI_Recv");
    failure_ = text;
  }

  void tell_all() {
    std::vector<MPI_Request> sends;
    for (int to = 0; to < size_; ++to) {
      if (to == rank_) continue;
      // Synchronous: an Isend as short as this is done when it is on its way, not when it is heard.
      MPI_Issend(failure_.data(), count(failure_.size()), MPI_CHAR, to, kAbortTag, world_,
                 &sends.emplace_back());
    }
    const auto end = std::chrono::steady_clock::now() + kHearing;
    int heard = 0;
    while (!heard && std::chrono::steady_clock::now() < end) {
      MPI_Testall(static_cast<int>(sends.size()), sends.data(), &heard, MPI_STATUSES_IGNORE);
      std::this_thread::sleep_for(kPause);
    }
    if (heard) std::this_thread::sleep_for(kSaying);
  }

  MPI_Comm world_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  bool finished_ = false;
  std::mutex mutex_;  // of MPI, and guards all below
  Ticket next_ = 0;
  std::unordered_map<Ticket, MPI_Request> requests_;
  std::string failure_;  // the first one's, with its process; "": none
};

// Open MPI opens its components at run time, and some of them look for its symbols among those that
// all can see: plugins are opened with theirs hidden.
void show_mpi_to_its_components() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&MPI_Init_thread), &info) == 0) return;
  dlopen(info.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
}

std::unique_ptr<ProcessGroup> open() {
  show_mpi_to_its_components();
  return std::make_unique<MpiGroup>();
}

// "Open MPI v4.1.4", of a longer text.
std::string library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string all(text, static_cast<size_t>(length));
  return all.substr(0, all.find_first_of(",\n"));
}

constexpr MpiPlugin kPlugin = {kMpiPluginVersion, library, open};

}  // namespace
}  // namespace stoker

extern "C" __attribute__((visibility("default"))) const stoker::MpiPlugin* stoker_mpi_plugin() {
  return &stoker::kPlugin;
}
