#include "python/core/thread_reader.h"

#include <algorithm>
#include <stdexcept>

#include "python/core/kept_object.h"
#include "python/core/read_stop.h"
#include "python/core/unlocked.h"

namespace stoker::python {
namespace {

namespace nb = nanobind;

// Keeps what Python knows of a thread that it did not make, until the thread ends. Otherwise every
// call would find an empty threading.local(), where a program may keep its open file.
class KnownThread {
 public:
  KnownThread() : is_ours_(PyGILState_GetThisThreadState() == nullptr) {
    if (!is_ours_) return;
    take_python_lock();
    PyEval_SaveThread();
  }
  ~KnownThread() {
    if (!is_ours_ || Py_IsInitialized() == 0) return;
    const Locked locked;
    // For the constructor's; the end of `locked` is the last one, which forgets the thread.
    PyGILState_Release(PyGILState_LOCKED);
  }
  KnownThread(const KnownThread&) = delete;
  KnownThread& operator=(const KnownThread&) = delete;

 private:
  const bool is_ours_;
};

void append(nb::handle part, std::vector<uint8_t>& buffer, size_t& size) {
  Py_buffer view;
  if (PyObject_GetBuffer(part.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
  const auto bytes = static_cast<size_t>(view.len);
  const auto* const from = static_cast<const uint8_t*>(view.buf);
  if (buffer.size() < size + bytes) buffer.resize(size + bytes);
  std::copy_n(from, bytes, buffer.data() + size);
  size += bytes;
  PyBuffer_Release(&view);
}

class ThreadReader final : public DatasetReader {
 public:
  explicit ThreadReader(nb::object answer)
      : function_(answer), owner_(keep_object(std::move(answer))) {}

  DatasetAnswer read(SampleId id, std::vector<uint8_t>& buffer) override {
    static thread_local const KnownThread known;
    const Locked locked;
    try {
      const auto answer = nb::cast<nb::tuple>(function_(id));
      DatasetAnswer result{static_cast<AnswerKind>(nb::cast<uint32_t>(answer[0])),
                           nb::cast<int32_t>(answer[1])};
      for (const nb::handle part : nb::cast<nb::list>(answer[2])) append(part, buffer, result.size);
      return result;
    } catch (nb::python_error& error) {
      // An exception of Python belongs to its thread, and a feed hands errors to another one.
      if (reads_for_feed()) throw std::runtime_error(error.what());
      throw;
    }
  }

 private:
  const nb::handle function_;
  const std::shared_ptr<const void> owner_;
};

}  // namespace

std::shared_ptr<DatasetReader> make_thread_reader(nb::object answer) {
  return std::make_shared<ThreadReader>(std::move(answer));
}

}  // namespace stoker::python
