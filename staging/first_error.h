// Keeps the first of the errors that several threads meet, for the thread that waits for them.
// Threads: keep_current() from any; rethrow() from any, usually after the others have ended.
#pragma once

#include <exception>

#include "staging/mutex.h"

namespace stoker {

class FirstError {
 public:
  // REQUIRES: an exception is being handled.
  void keep_current() {
    const MutexLock lock(mutex_);
    if (!error_) error_ = std::current_exception();
  }
  // Does nothing if there was no error.
  void rethrow() {
    const MutexLock lock(mutex_);
    if (error_) std::rethrow_exception(error_);
  }

 private:
  Mutex mutex_;
  std::exception_ptr error_ GUARDED_BY(mutex_);
};

}  // namespace stoker
