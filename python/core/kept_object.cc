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
  const Locked locked;
  Py_DECREF(object);
}

}  // namespace

std::shared_ptr<const void> keep_object(nanobind::object object) {
  return {object.release().ptr(), release};
}

}  // namespace stoker::python
