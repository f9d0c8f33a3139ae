// Locks that clang checks: annotations say which mutex guards a member and what a function requires
// of its callers, and `clang -Wthread-safety` refuses code that breaks them (the stage `threads` of
// .ci/run). With other compilers the macros are empty and the types are the standard library's.
//
// Constructors and destructors are not checked: no other thread has the object then. Threads: any.
// Errors: only the standard library's std::system_error.
#pragma once

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>

#if defined(__clang__)
#define STOKER_THREADS(x) __attribute__((x))
#else
#define STOKER_THREADS(x)
#endif

// For a member: it is accessed only with this mutex held.
#define GUARDED_BY(mutex) STOKER_THREADS(guarded_by(mutex))
// For a function: its callers hold the mutex, or share it.
#define REQUIRES(...) STOKER_THREADS(requires_capability(__VA_ARGS__))
#define REQUIRES_SHARED(...) STOKER_THREADS(requires_shared_capability(__VA_ARGS__))
// For a mutex: it is taken after these.
#define ACQUIRED_AFTER(...) STOKER_THREADS(acquired_after(__VA_ARGS__))
// For a function whose body clang cannot analyse: a comment says why it is correct.
#define NO_THREAD_SAFETY_ANALYSIS STOKER_THREADS(no_thread_safety_analysis)
// For the locks themselves.
#define CAPABILITY(name) STOKER_THREADS(capability(name))
#define SCOPED_CAPABILITY STOKER_THREADS(scoped_lockable)
#define ACQUIRE(...) STOKER_THREADS(acquire_capability(__VA_ARGS__))
#define ACQUIRE_SHARED(...) STOKER_THREADS(acquire_shared_capability(__VA_ARGS__))
#define RELEASE(...) STOKER_THREADS(release_capability(__VA_ARGS__))
#define RELEASE_SHARED(...) STOKER_THREADS(release_shared_capability(__VA_ARGS__))
#define RELEASE_GENERIC(...) STOKER_THREADS(release_generic_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) STOKER_THREADS(try_acquire_capability(__VA_ARGS__))
#define TRY_ACQUIRE_SHARED(...) STOKER_THREADS(try_acquire_shared_capability(__VA_ARGS__))

namespace stoker {

// How they are used:
//
//   class Counter {
//     void add() {
//       const MutexLock lock(mutex_);
//       add_locked();
//     }
//     void add_locked() REQUIRES(mutex_) { ++count_; }
//     Mutex mutex_;
//     int count_ GUARDED_BY(mutex_) = 0;
//   };
//
// Wait for a condition in a loop, because clang treats a lambda as another function, which holds no
// lock:
//
//   MutexLock lock(mutex_);
//   while (!ended_) changed_.wait(lock);

class CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() ACQUIRE() { mutex_.lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }
  bool try_lock() TRY_ACQUIRE(true) { return mutex_.try_lock(); }

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

// Holds a mutex until the end of its block, or until unlock().
class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : lock_(mutex.mutex_) {}
  ~MutexLock() RELEASE() {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void unlock() RELEASE() { lock_.unlock(); }

 private:
  friend class CondVar;
  std::unique_lock<std::mutex> lock_;
};

// Held by many threads in shared mode, or by one exclusively.
class CAPABILITY("mutex") SharedMutex {
 public:
  SharedMutex() = default;
  SharedMutex(const SharedMutex&) = delete;
  SharedMutex& operator=(const SharedMutex&) = delete;

  void lock() ACQUIRE() { mutex_.lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }
  void lock_shared() ACQUIRE_SHARED() { mutex_.lock_shared(); }
  void unlock_shared() RELEASE_SHARED() { mutex_.unlock_shared(); }
  bool try_lock_shared() TRY_ACQUIRE_SHARED(true) { return mutex_.try_lock_shared(); }

 private:
  std::shared_mutex mutex_;
};

class SCOPED_CAPABILITY SharedLock {
 public:
  explicit SharedLock(SharedMutex& mutex) ACQUIRE_SHARED(mutex) : mutex_(mutex) {
    mutex_.lock_shared();
  }
  ~SharedLock() RELEASE_GENERIC() { mutex_.unlock_shared(); }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;

 private:
  SharedMutex& mutex_;
};

class SCOPED_CAPABILITY ExclusiveLock {
 public:
  explicit ExclusiveLock(SharedMutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~ExclusiveLock() RELEASE() { mutex_.unlock(); }
  ExclusiveLock(const ExclusiveLock&) = delete;
  ExclusiveLock& operator=(const ExclusiveLock&) = delete;

 private:
  SharedMutex& mutex_;
};

// Waits may end early, like those of std::condition_variable: the caller tests its condition again.
class CondVar {
 public:
  void notify_one() noexcept { changed_.notify_one(); }
  void notify_all() noexcept { changed_.notify_all(); }

  // This is what std::condition_variable::wait() does. A call of that function alone would need the
  // libstdc++ of GCC 12, and a Python wheel would need a newer system.
  void wait(MutexLock& lock) {
    pthread_cond_wait(changed_.native_handle(), lock.lock_.mutex()->native_handle());
  }
  // Returns false when `until` has passed.
  template <typename Clock, typename Duration>
  bool wait_until(MutexLock& lock, const std::chrono::time_point<Clock, Duration>& until) {
    return changed_.wait_until(lock.lock_, until) == std::cv_status::no_timeout;
  }

 private:
  std::condition_variable changed_;
};

}  // namespace stoker
