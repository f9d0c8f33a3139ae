// The CPU engine's own threads: run(job) gives every worker its turn at the same time and waits.
// Each thread asks OpenMP for teams of one, so oneDNN never makes threads of its own.
// Owner: CpuEngine. Threads: run() from one thread at a time. An exception of a worker is rethrown
// by run() after all have ended.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace stoker {

class CpuWorkers {
 public:
  explicit CpuWorkers(int count);
  ~CpuWorkers();
  CpuWorkers(const CpuWorkers&) = delete;
  CpuWorkers& operator=(const CpuWorkers&) = delete;

  int size() const { return static_cast<int>(threads_.size()); }
  void run(const std::function<void(int worker)>& job);

 private:
  void loop(int worker);

  std::mutex mutex_;
  std::condition_variable start_, finished_;
  const std::function<void(int)>* job_ = nullptr;  // guarded by mutex_, as all below
  int64_t round_ = 0;
  int running_ = 0;
  bool stopping_ = false;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;  // constant after construction
};

}  // namespace stoker
