// The threads of the CPU engine: run(job) calls the job once on every worker, at the same time, and
// waits for all of them. Each thread asks OpenMP for teams of one, so that oneDNN starts no threads
// of its own.
// Owner: CpuEngine. Threads: run() from one thread at a time. Errors: run() rethrows the first
// exception of a worker after all workers have ended the job.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "staging/mutex.h"

namespace stoker {

class CpuWorkers {
 public:
  explicit CpuWorkers(int count);
  ~CpuWorkers();
  CpuWorkers(const CpuWorkers&) = delete;
  CpuWorkers& operator=(const CpuWorkers&) = delete;

  int size() const { return static_cast<int>(threads_.size()); }
  using Job = std::function<void(int worker)>;
  void run(const Job& job);

 private:
  void loop(int worker);
  // Waits for a job that comes after `done`, which becomes that job's number. Null: the workers
  // end.
  const Job* next_job(int64_t& done);
  void end_job(std::exception_ptr error);  // null: the job succeeded

  Mutex mutex_;
  CondVar start_, finished_;
  const Job* job_ GUARDED_BY(mutex_) = nullptr;
  int64_t jobs_ GUARDED_BY(mutex_) = 0;  // so far
  int running_ GUARDED_BY(mutex_) = 0;   // workers that have not ended the job
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::exception_ptr error_ GUARDED_BY(mutex_);  // the job's first
  std::vector<std::jthread> threads_;            // constant after construction
};

}  // namespace stoker
