#include "python/core/kept_object.h"

#include "python/core/unlocked.h"

namespace stoker::python {
namespace {

void release(PyObject* object) {
  if (holds_python_lock()) {
    Py_DECREF(object);
    return;
  }
  if (Py_IsInitialized() == 0) return;
  try {
    const PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF(object);
    PyGILState_Release(state);
  } catch (const abi::__forced_unwind&) {
    for (;;) pause();  // as in ~Unlocked()
  }
}

}  // namespace

std::shared_ptr<const void> keep_object(nanobind::object object) {
  return {object.release().ptr(), release};
}

}  // namespace stoker::python
