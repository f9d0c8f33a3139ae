// Lets go of Python's lock for as long as it lives, for calls that wait. Instead of nanobind's
// gil_scoped_release: when the interpreter ends meanwhile, Python (before 3.14) ends a daemon
// thread that wants the lock back by unwinding its stack, which C++ answers with terminate(). Such
// a thread sleeps here until the process is gone.
#pragma once

#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

// Exported by every CPython, but not in the stable ABI's headers.
extern "C" int PyGILState_Check();

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

// Whether this thread holds Python's lock, and may let go of it. For who is called with and without
// it. False while the interpreter ends: nobody else runs then.
inline bool holds_python_lock() { return Py_IsInitialized() != 0 && PyGILState_Check() != 0; }

}  // namespace stoker::python
