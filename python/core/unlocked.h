// Lets go of Python's lock for as long as it lives, for calls that wait. Instead of nanobind's
// gil_scoped_release: when the interpreter ends meanwhile, Python (before 3.14) ends a daemon
// thread that wants the lock back by unwinding its stack, which C++ answers with terminate(). Such
// a thread sleeps here until the process is gone.
#pragma once

#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

namespace stoker::python {

class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked() {
    try {
      PyEval_RestoreThread(state_);
    } catch (const abi::__forced_unwind&) {
      for (;;) pause();
    }
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* const state_;
};

}  // namespace stoker::python
