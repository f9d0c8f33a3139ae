#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <stdexcept>

#include "pipeline/files/file_buffer.h"
#include "python/core/array.h"
#include "python/core/bind.h"
#include "python/core/python_lock.h"
#include "python/core/read_stop.h"
#include "python/core/worker_pool.h"

namespace stoker::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

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

void append_part(nb::handle part, std::vector<uint8_t>& buffer, size_t& size) {
  Py_buffer view;
  if (PyObject_GetBuffer(part.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
  const auto bytes = static_cast<size_t>(view.len);
  const auto* const from = static_cast<const uint8_t*>(view.buf);
  extend_file_buffer(buffer, size + bytes);
  std::copy_n(from, bytes, buffer.data() + size);
  size += bytes;
  PyBuffer_Release(&view);
}

// Runs an object's __getitem__ on the thread that reads, with Python's lock for that call alone.
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
      for (const nb::handle part : nb::cast<nb::list>(answer[2]))
        append_part(part, buffer, result.size);
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

// `answer`: a function of an id that returns (kind, label, parts), as in
// python/stoker/_dataset_worker.py.
std::shared_ptr<DatasetReader> thread_reader(nb::object answer) {
  return std::make_shared<ThreadReader>(std::move(answer));
}

// The name, type and shape of a target; without a shape it varies.
using ColumnTuple = std::tuple<std::string, std::string, std::optional<std::vector<int64_t>>>;

std::string text_of_object(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

std::shared_ptr<DatasetReader> worker_pool(std::vector<std::string> command,
                                           const nb::bytes& preparation, const nb::bytes& object,
                                           int workers) {
  return make_worker_pool({.command = std::move(command),
                           .preparation = text_of_object(preparation),
                           .object = text_of_object(object)},
                          workers);
}

SharedSource source_of(const std::shared_ptr<DatasetReader>& reader, int64_t samples,
                       std::optional<std::vector<int32_t>> labels,
                       std::vector<std::string> class_names, std::string root,
                       const std::vector<ColumnTuple>& targets, const AnnotationInfo* annotations) {
  std::vector<TargetColumn> columns;
  for (const auto& [name, type, shape] : targets) {
    columns.push_back({name, target_type_named(type), shape.value_or(std::vector<int64_t>()),
                       !shape.has_value()});
  }
  return shared(
      make_dataset_source(reader, {.samples = samples,
                                   .labels = std::move(labels),
                                   .class_names = std::move(class_names),
                                   .root = std::move(root),
                                   .targets = std::move(columns),
                                   .annotations = annotations ? *annotations : AnnotationInfo{}}));
}

}  // namespace

void bind_dataset(nb::module_& module) {
  nb::class_<ReaderUse>(module, "ReaderUse");
  nb::class_<DatasetReader>(module, "DatasetReader")
      .def("use", [](std::shared_ptr<DatasetReader> r) {
        return std::make_unique<ReaderUse>(std::move(r));
      });
  module.def("worker_pool", worker_pool, "command"_a, "preparation"_a, "object"_a, "workers"_a);
  module.def("thread_reader", thread_reader, "answer"_a);
  module.def("dataset_source", source_of, "reader"_a, "samples"_a, "labels"_a.none(),
             "class_names"_a, "root"_a, "targets"_a, "annotations"_a.none());
}

}  // namespace stoker::python
