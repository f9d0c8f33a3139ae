#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "python/core/bind.h"
#include "python/core/dataset_source.h"
#include "python/core/target_array.h"
#include "python/core/thread_reader.h"
#include "python/core/worker_pool.h"

namespace stoker::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

// The name, type and shape of a target.
using ColumnTuple = std::tuple<std::string, std::string, std::vector<int64_t>>;

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
                       const std::vector<ColumnTuple>& targets) {
  std::vector<TargetColumn> columns;
  for (const auto& [name, type, shape] : targets) {
    columns.push_back({name, target_type_named(type), shape});
  }
  return make_dataset_source(reader, {.samples = samples,
                                      .labels = std::move(labels),
                                      .class_names = std::move(class_names),
                                      .root = std::move(root),
                                      .targets = std::move(columns)});
}

}  // namespace

void bind_dataset(nb::module_& module) {
  nb::class_<ReaderUse>(module, "ReaderUse");
  nb::class_<DatasetReader>(module, "DatasetReader")
      .def("use", [](std::shared_ptr<DatasetReader> r) {
        return std::make_unique<ReaderUse>(std::move(r));
      });
  module.def("worker_pool", worker_pool, "command"_a, "preparation"_a, "object"_a, "workers"_a);
  module.def("thread_reader", make_thread_reader, "answer"_a);
  module.def("dataset_source", source_of, "reader"_a, "samples"_a, "labels"_a.none(),
             "class_names"_a, "root"_a, "targets"_a);
}

}  // namespace stoker::python
