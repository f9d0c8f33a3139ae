#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "pipeline/seek_index/build.h"
#include "pipeline/seek_index/file.h"
#include "python/core/bind.h"
#include "python/core/python_lock.h"
#include "staging/allowed_cores.h"

namespace stoker::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

SeekIndexTotals build(const std::shared_ptr<Source>& source, const std::string& path, SeekStep step,
                      int workers) {
  const auto work = [&](const std::atomic<bool>& stop) {
    const SeekIndexOptions options{.step = step,
                                   .workers = workers,
                                   .go_on = [&](int64_t, const SeekIndexTotals&) { return !stop; }};
    return build_seek_indexes(*source, path, options);
  };
  return std::move(*run_interruptible(work));
}

}  // namespace

void bind_index(nb::module_& module) {
  nb::enum_<SeekStep>(module, "SeekStep")
      .value("row", SeekStep::row)
      .value("eight", SeekStep::eight);
  nb::class_<Finding>(module, "Finding")
      .def_ro("id", &Finding::id)
      .def_ro("reason", &Finding::reason)
      .def_ro("byte_offset", &Finding::byte_offset)
      .def_ro("message", &Finding::message);
  nb::class_<SeekIndexTotals>(module, "SeekIndexTotals")
      .def_ro("indexed", &SeekIndexTotals::indexed)
      .def_ro("jpeg_bytes", &SeekIndexTotals::jpeg_bytes)
      .def_ro("file_bytes", &SeekIndexTotals::file_bytes)
      .def_ro("bad", &SeekIndexTotals::bad);
  module.def("usable_cores", [] { return usable_cores(); });
  module.def("default_seek_index_path", &default_seek_index_path, "source"_a);
  module.def("build_seek_indexes", build, "source"_a, "path"_a, "step"_a, "workers"_a);
}

}  // namespace stoker::python
