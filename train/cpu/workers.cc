#include "train/cpu/workers.h"

#include <dlfcn.h>

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
  for (int i = 0; i < count; ++i) threads_.emplace_back([this, i] { loop(i); });
}

CpuWorkers::~CpuWorkers() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  start_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void CpuWorkers::run(const std::function<void(int)>& job) {
  std::unique_lock lock(mutex_);
  job_ = &job;
  running_ = size();
  error_ = nullptr;
  ++round_;
  start_.notify_all();
  finished_.wait(lock, [&] { return running_ == 0; });
  job_ = nullptr;
  if (error_) std::rethrow_exception(error_);
}

void CpuWorkers::loop(int worker) {
  ask_for_teams_of_one();
  int64_t done = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    start_.wait(lock, [&] { return stopping_ || round_ != done; });
    if (stopping_) return;
    done = round_;
    const std::function<void(int)>& job = *job_;
    lock.unlock();
    std::exception_ptr error;
    try {
      job(worker);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !error_) error_ = error;
    if (--running_ == 0) finished_.notify_one();
  }
}

}  // namespace stoker
