// Takes Python's lock while it lives, on any thread, whether that thread holds it or not. If the
// interpreter ends meanwhile, the thread sleeps until the process ends, as in ~Unlocked().
#pragma once

#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

namespace stoker::python {

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
