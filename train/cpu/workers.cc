#include "train/cpu/workers.h"

#include <dlfcn.h>

#include "staging/threads.h"

namespace stoker {
namespace {

// Looked up at run time: which OpenMP library there is (if any) is oneDNN's choice, not ours.
// The number belongs to the calling thread.
void ask_for_teams_of_one() {
  using SetThreads = void (*)(int);
  const auto set = reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (set != nullptr) set(1);
}

}  // namespace

CpuWorkers::CpuWorkers(int count) {
  threads_ =
      start_threads("the CPU engine", count, [this](int64_t i) { loop(static_cast<int>(i)); });
}

CpuWorkers::~CpuWorkers() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  start_.notify_all();
  threads_.clear();
}

void CpuWorkers::run(const Job& job) {
  MutexLock lock(mutex_);
  job_ = &job;
  running_ = size();
  error_ = nullptr;
  ++jobs_;
  start_.notify_all();
  while (running_ > 0) finished_.wait(lock);
  job_ = nullptr;
  if (error_) std::rethrow_exception(error_);
}

void CpuWorkers::loop(int worker) {
  ask_for_teams_of_one();
  int64_t done = 0;
  while (const Job* job = next_job(done)) {
    std::exception_ptr error;
    try {
      (*job)(worker);
    } catch (...) {
      error = std::current_exception();
    }
    end_job(error);
  }
}

const CpuWorkers::Job* CpuWorkers::next_job(int64_t& done) {
  MutexLock lock(mutex_);
  while (!stopping_ && jobs_ == done) start_.wait(lock);
  done = jobs_;
  return stopping_ ? nullptr : job_;
}

void CpuWorkers::end_job(std::exception_ptr error) {
  const MutexLock lock(mutex_);
  if (error && !error_) error_ = error;
  if (--running_ == 0) finished_.notify_one();
}

}  // namespace stoker
