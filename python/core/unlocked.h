// Unlocked releases Python's lock while it lives, for calls that wait; Locked takes it, on any
// thread, whether that thread holds it or not. They replace nanobind's gil_scoped_release and
// gil_scoped_acquire: if the interpreter ends meanwhile, Python (before 3.14) ends a daemon thread
// that wants the lock by unwinding its stack, which C++ answers with terminate(). Such a thread
// sleeps here until the process ends.
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

inline PyGILState_STATE take_python_lock() {
  try {
    return PyGILState_Ensure();
  } catch (const abi::__forced_unwind&) {
    for (;;) pause();
  }
}

class Locked {
 public:
  Locked() : state_(take_python_lock()) {}
  ~Locked() { PyGILState_Release(state_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  const PyGILState_STATE state_;
};

}  // namespace stoker::python
