// Python's lock in C++ code: to release it for calls that wait, to take it on any thread, to drop
// an object with it or without, and to run long work so that Ctrl-C ends it.
//
// A free-threaded Python has no such lock, and yet everything here: there several threads "hold" it
// at once, which are those that may use Python's objects. Now and then (to collect garbage, say) it
// waits for all of them to release it or to come back to Python, so a wait for another thread
// without releasing it can last forever there, too. State in C++ needs locks of its own in either
// Python.
#pragma once

#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>

#include "staging/threads.h"

// Exported by every CPython, but not in the stable ABI's headers.
extern "C" int PyGILState_Check();

namespace stoker::python {

// Unlocked releases Python's lock while it lives; Locked takes it, whether the thread holds it or
// not. They replace nanobind's gil_scoped_release and gil_scoped_acquire: if the interpreter ends
// meanwhile, Python (before 3.14) ends a daemon thread that wants the lock by unwinding its stack,
// which C++ answers with terminate(). Such a thread sleeps here until the process ends.
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

// Keeps an object for C++ code that drops it on any thread. It is released under Python's lock,
// which is taken where it is not held; or never, if the interpreter ends before. REQUIRES: the
// lock, for the call itself.
inline std::shared_ptr<const void> keep_object(nanobind::object object) {
  return {object.release().ptr(), [](PyObject* kept) {
            if (holds_python_lock()) {
              Py_DECREF(kept);
            } else if (Py_IsInitialized() != 0) {
              const Locked locked;
              Py_DECREF(kept);
            }
          }};
}

inline constexpr auto kSignalPoll = std::chrono::milliseconds(50);  // between two looks for Ctrl-C

// Returns what `work(stop)` returns. It runs on another thread, so that a signal's handler can run
// on this one (Python runs handlers on its main thread alone). If the handler raises an exception,
// `stop` becomes true, and the exception is thrown when `work` has ended. REQUIRES: Python's lock,
// which is not held while this waits.
template <class Work>
auto run_interruptible(const Work& work) {
  std::atomic<bool> stop{false};
  std::packaged_task<decltype(work(stop))()> task([&] { return work(stop); });
  auto result = task.get_future();
  const std::jthread thread = start_thread("this call", [&task] { task(); });
  const auto is_done = [&] {
    const Unlocked unlocked;
    return result.wait_for(kSignalPoll) == std::future_status::ready;
  };
  while (!is_done()) {
    if (PyErr_CheckSignals() == 0) continue;
    stop = true;
    {
      const Unlocked unlocked;
      result.wait();
    }
    throw nanobind::python_error();
  }
  return result.get();
}

}  // namespace stoker::python
