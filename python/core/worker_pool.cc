#include "python/core/worker_pool.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "python/core/read_stop.h"
#include "staging/mutex.h"

namespace stoker::python {
namespace {

using std::chrono::steady_clock;
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
