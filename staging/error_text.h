// The text of an exception for users, and the first exception of several threads. Threads: any.
#pragma once

#include <cstddef>
#include <exception>
#include <new>
#include <string>

#include "staging/mutex.h"

namespace stoker {

// Memory that was asked for in one piece and is not there.
class OutOfMemory final : public std::bad_alloc {
 public:
  // `purpose` completes "for ...".
  OutOfMemory(const std::string& purpose, size_t bytes);
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  const std::string text_;
};

// Returns the exception's message, in our words where a library has thrown it: of a file system
// error the path and the reason, of a bad_alloc what this process has and what to do, of JSON what
// is wrong with it.
std::string error_text(const std::exception& error);

// The same of the exception that is being handled, "unknown error" if it has no message. REQUIRES:
// an exception is being handled.
std::string current_error_text();

// Keeps the first of the errors that several threads meet, for the thread that waits for them.
// rethrow() is usually called after the others have ended.
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
