// libstoker_mpi.so: a ProcessGroup over MPI. This is the only file that includes MPI. All MPI calls
// are short and made under one mutex (MPI_THREAD_SERIALIZED). A wait tests and pauses in a loop, so
// that a waiting process leaves its core to the decoders, receives another process's failure, and
// can be aborted.
//
// Which process is late? The partner of a wait may itself wait for a third process, because
// gradients go from process to process. So every process that waits sends a message to process 0
// every few seconds, and another when it continues. Process 0 names the processes from which it
// received none. Process 0 sends its own messages to all; if they stop, the first process of each
// machine reports that process 0 is late.
#include "train/collective/process/mpi_plugin.h"

#include <dlfcn.h>
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <cstdio>
#include <stdexcept>
#include <thread>
#include <unordered_map>
#include <vector>

#include "staging/mutex.h"
#include "train/collective/process/late_notice.h"

namespace stoker {
namespace {

constexpr int kDataTag = 1, kAbortTag = 2, kWaitTag = 3;
constexpr int kEagerTests = 200;  // tests before the first pause
constexpr auto kMpiPause = std::chrono::microseconds(50);
// The most time for the other processes to receive a failure, and then to print it before the
// launcher ends them.
constexpr auto kHearing = std::chrono::seconds(5);
constexpr auto kSaying = std::chrono::seconds(1);

constexpr auto kTelling = std::chrono::seconds(2);  // between two messages of a waiting process
constexpr auto kBelieving = 3 * kTelling;           // how long such a message counts
constexpr size_t kNamedRanks = 8;
constexpr char kWaits = 'w', kGoesOn = 'g';
using HostName = std::array<char, 64>;
using Clock = std::chrono::steady_clock;

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

void check_mpi(int code, const char* what) {
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
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided),
              "MPI_Init_thread");
    if (provided < MPI_THREAD_SERIALIZED) {
      throw std::runtime_error("MPI: this library was built without support for threads");
    }
    check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &world_), "MPI_Comm_dup");
    MPI_Comm_set_errhandler(world_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(world_, &rank_);
    MPI_Comm_size(world_, &size_);
    heard_.resize(static_cast<size_t>(size_));
    hosts_.resize(static_cast<size_t>(size_));
    HostName own{};
    host_name().copy(own.data(), own.size() - 1);
    check_mpi(MPI_Allgather(own.data(), sizeof own, MPI_CHAR, hosts_.data(), sizeof own, MPI_CHAR,
                            world_),
              "MPI_Allgather");
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
    const MutexLock lock(mutex_);
    check_mpi(
        MPI_Isend(bytes.data(), count(bytes.size()), MPI_BYTE, to, kDataTag, world_, &request),
        "MPI_Isend");
    return keep(request);
  }
  Ticket receive(int from, std::span<std::byte> bytes) override {
    MPI_Request request;
    const MutexLock lock(mutex_);
    check_mpi(
        MPI_Irecv(bytes.data(), count(bytes.size()), MPI_BYTE, from, kDataTag, world_, &request),
        "MPI_Irecv");
    return keep(request);
  }

  void wait(Ticket ticket) override {
    LongWait waited(*this);
    for (int tests = 0;; ++tests) {
      if (test(ticket)) return;
      if (tests < kEagerTests) {
        sched_yield();
      } else {
        std::this_thread::sleep_for(kMpiPause);
        waited.look();
      }
    }
  }

  void abort(const std::string& why) noexcept override {
    try {
      const MutexLock lock(mutex_);
      if (!failure_.empty()) return;
      failure_ = "process " + std::to_string(rank_) + " of " + std::to_string(size_) + " (" +
                 host_name() + ") failed: " + why;
      tell_all();
    } catch (...) {
      // The launcher ends the other processes when this one has ended.
    }
  }

  void finish() override {
    finished_ = true;
    check_mpi(MPI_Barrier(world_), "MPI_Barrier");
    const MutexLock lock(mutex_);
    hear_waits();  // so that no message is left in MPI
    check_mpi(MPI_Waitall(static_cast<int>(told_.size()), told_.data(), MPI_STATUSES_IGNORE),
              "MPI_Waitall");
    check_mpi(MPI_Finalize(), "MPI_Finalize");
  }

 private:
  // One wait of one thread; it sends and reports only if the wait takes long.
  class LongWait {
   public:
    explicit LongWait(MpiGroup& group) : group_(group) {}
    ~LongWait() {
      if (next_ > kTelling) group_.end_wait();
    }
    LongWait(const LongWait&) = delete;
    LongWait& operator=(const LongWait&) = delete;

    void look() {
      if (notice_.waited() >= next_) {
        group_.tell_wait(next_ == kTelling);
        next_ += kTelling;
      }
      if (notice_.due()) group_.say_who_is_late(notice_.waited());
    }

   private:
    MpiGroup& group_;
    LateNotice notice_;
    std::chrono::seconds next_ = kTelling;
  };

  void tell_wait(bool first) {
    const MutexLock lock(mutex_);
    if (first) ++long_waits_;
    tell(kWaits);
  }
  void end_wait() noexcept {
    const MutexLock lock(mutex_);
    if (--long_waits_ == 0) tell(kGoesOn);
  }
  void tell(const char& news) noexcept REQUIRES(mutex_) {
    for (int to = 0; to < size_; ++to) {
      if (to == rank_ || (rank_ != 0 && to != 0)) continue;
      MPI_Isend(&news, 1, MPI_CHAR, to, kWaitTag, world_, &told_.emplace_back());
    }
  }

  bool waits(int rank) const REQUIRES(mutex_) {
    return Clock::now() - heard_[static_cast<size_t>(rank)] < kBelieving;
  }

  void say_who_is_late(std::chrono::seconds waited) {
    const MutexLock lock(mutex_);
    hear_waits();
    std::vector<int> late;
    if (rank_ == 0) {
      for (int rank = 1; rank < size_; ++rank) {
        if (!waits(rank)) late.push_back(rank);
      }
    } else if (speaks_for_its_machine() && !waits(0)) {
      late.push_back(0);
    }
    if (late.empty()) return;
    std::string names;
    for (size_t i = 0; i < std::min(late.size(), kNamedRanks); ++i) {
      names += (i == 0 ? "" : ", ") + std::to_string(late[i]) + " on " +
               hosts_[static_cast<size_t>(late[i])].data();
    }
    if (late.size() > kNamedRanks) {
      names += " and " + std::to_string(late.size() - kNamedRanks) + " more";
    }
    std::fprintf(stderr, "stoker: waiting for rank%s %s for %lld s\n", late.size() > 1 ? "s" : "",
                 names.c_str(), static_cast<long long>(waited.count()));
  }

  bool speaks_for_its_machine() const {
    const auto here = hosts_.begin() + rank_;
    return std::find(hosts_.begin() + 1, here, *here) == here;
  }

  static int count(size_t bytes) {
    if (bytes > INT_MAX) throw std::runtime_error("MPI: a message of 2 GiB or more");
    return static_cast<int>(bytes);
  }
  Ticket keep(MPI_Request request) REQUIRES(mutex_) {
    requests_[next_] = request;
    return next_++;
  }

  bool test(Ticket ticket) {
    const MutexLock lock(mutex_);
    hear();
    int done = 0;
    check_mpi(MPI_Test(&requests_.at(ticket), &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done) {
      requests_.erase(ticket);
      return true;
    }
    if (!failure_.empty()) throw std::runtime_error(failure_);
    return false;
  }

  // Receives the news of the processes that tell this one whether they wait.
  void hear_waits() REQUIRES(mutex_) {
    for (;;) {
      int there = 0;
      MPI_Status status;
      check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, kWaitTag, world_, &there, &status), "MPI_Iprobe");
      if (!there) break;
      char news = 0;
      check_mpi(
          MPI_Recv(&news, 1, MPI_CHAR, status.MPI_SOURCE, kWaitTag, world_, MPI_STATUS_IGNORE),
          "MPI_Recv");
      heard_[static_cast<size_t>(status.MPI_SOURCE)] =
          news == kWaits ? Clock::now() : Clock::time_point{};
    }
    std::erase_if(told_, [](MPI_Request& request) {
      int done = 0;
      check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
      return done != 0;
    });
  }

  // Receives the failure of another process, if there is one.
  void hear() REQUIRES(mutex_) {
    if (!failure_.empty()) return;
    int there = 0;
    MPI_Status status;
    check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, kAbortTag, world_, &there, &status), "MPI_Iprobe");
    if (!there) return;
    int length = 0;
    MPI_Get_count(&status, MPI_CHAR, &length);
    std::string text(static_cast<size_t>(length), '\0');
    check_mpi(
        MPI_Recv(text.data(), length, MPI_CHAR, status.MPI_SOURCE, kAbortTag, world_, &status),
        "MPI_Recv");
    failure_ = text;
  }

  void tell_all() REQUIRES(mutex_) {
    std::vector<MPI_Request> sends;
    for (int to = 0; to < size_; ++to) {
      if (to == rank_) continue;
      // A synchronous send, because an Isend of a short message is complete before it is received.
      MPI_Issend(failure_.data(), count(failure_.size()), MPI_CHAR, to, kAbortTag, world_,
                 &sends.emplace_back());
    }
    const auto end = Clock::now() + kHearing;
    int heard = 0;
    while (!heard && Clock::now() < end) {
      MPI_Testall(static_cast<int>(sends.size()), sends.data(), &heard, MPI_STATUSES_IGNORE);
      std::this_thread::sleep_for(kMpiPause);
    }
    if (heard) std::this_thread::sleep_for(kSaying);
  }

  MPI_Comm world_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  bool finished_ = false;
  std::vector<HostName> hosts_;  // by rank; constant after construction

  // Held for every call of MPI that other threads may make too.
  Mutex mutex_;
  Ticket next_ GUARDED_BY(mutex_) = 0;
  std::unordered_map<Ticket, MPI_Request> requests_ GUARDED_BY(mutex_);
  // The first failure, with its process; "" if there is none.
  std::string failure_ GUARDED_BY(mutex_);
  // By rank: when that process last sent this one that it waits.
  std::vector<Clock::time_point> heard_ GUARDED_BY(mutex_);
  int long_waits_ GUARDED_BY(mutex_) = 0;  // threads of this process that wait for long
  // Messages about such waits that are being sent.
  std::vector<MPI_Request> told_ GUARDED_BY(mutex_);
};

// Open MPI opens its components at run time, and some of them need its symbols to be global. But
// plugins, and the libraries that they need, are opened with hidden symbols.
void show_mpi_to_its_components() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&MPI_Init_thread), &info) == 0) return;
  dlopen(info.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
}

std::unique_ptr<ProcessGroup> open_group() {
  show_mpi_to_its_components();
  return std::make_unique<MpiGroup>();
}

// Returns the beginning of a longer text: "Open MPI v4.1.4".
std::string library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string all(text, static_cast<size_t>(length));
  return all.substr(0, all.find_first_of(",\n"));
}

constexpr MpiPlugin kPlugin = {kMpiPluginVersion, library, open_group};

}  // namespace
}  // namespace stoker

extern "C" __attribute__((visibility("default"))) const stoker::MpiPlugin* stoker_mpi_plugin() {
  return &stoker::kPlugin;
}
