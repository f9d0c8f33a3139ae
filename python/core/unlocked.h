// Releases Python's lock while it lives, for calls that wait. It replaces nanobind's
// gil_scoped_release: if the interpreter ends meanwhile, Python (before 3.14) ends a daemon thread
// that wants the lock back by unwinding its stack, which C++ answers with terminate(). Such a
// thread sleeps here until the process ends.
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

// Returns whether this thread holds Python's lock and may release it, for code that is called with
// and without it. False while the interpreter ends: nothing else runs then.
inline bool holds_python_lock() { return Py_IsInitialized() != 0 && PyGILState_Check() != 0; }

}  // namespace stoker::python
