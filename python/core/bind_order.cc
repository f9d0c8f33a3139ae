#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "pipeline/source/subset_source.h"
#include "python/core/bind.h"
#include "python/core/kept_object.h"
#include "python/core/order.h"
#include "python/core/shared_source.h"
#include "python/core/source_views.h"
#include "python/core/target_array.h"
#include "python/core/unlocked.h"

namespace stoker::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

BoundOrder weigh(const std::vector<double>& weights, int64_t length, bool replacement) {
  return {weighted_order(weights, {.length = length, .replacement = replacement})};
}

BoundOrder repeat(int64_t samples, int repeats, int64_t length) {
  return {repeated_order({.samples = samples, .repeats = repeats, .length = length})};
}

BoundOrder shuffle_blocks(int64_t samples, int64_t block, int64_t mixed) {
  return {block_shuffled_order({.samples = samples, .block = block, .mixed = mixed})};
}

// Piece i begins at the position first_positions[i]. REQUIRES: lists of one length.
BoundOrder blend(std::vector<int64_t> sizes, const std::vector<int64_t>& first_positions,
                 std::vector<std::vector<double>> weights, int64_t length) {
  BlendOptions options{.sizes = std::move(sizes), .length = length};
  for (size_t i = 0; i < first_positions.size(); ++i) {
    options.schedule.push_back({first_positions[i], std::move(weights.at(i))});
  }
  return {blend_order(options)};
}

// A table of targets: the column's name and type, the shape of one sample, and an object with the
// values in one piece of memory, which do not change.
using TableTuple = std::tuple<std::string, std::string, std::vector<int64_t>, nb::object>;

TargetTable table_of(const TableTuple& given) {
  const auto& [name, type, shape, values] = given;
  Py_buffer view;
  if (PyObject_GetBuffer(values.ptr(), &view, PyBUF_C_CONTIGUOUS) != 0) throw nb::python_error();
  TargetTable table{
      .column = {name, target_type_named(type), shape},
      .values = {static_cast<const std::byte*>(view.buf), static_cast<size_t>(view.len)}};
  PyBuffer_Release(&view);
  table.owner = keep_object(values);
  return table;
}

SharedSource add_targets(const SharedSource& source, const std::vector<TableTuple>& given) {
  std::vector<TargetTable> tables;
  for (const TableTuple& each : given) tables.push_back(table_of(each));
  const Unlocked unlocked;  // the values are read once, which may take long
  return shared(with_targets(source, std::move(tables)));
}

void bind_views(nb::module_& module) {
  module.def("with_targets", add_targets, "source"_a, "tables"_a);
  module.def(
      "subset",
      [](const SharedSource& source, const std::vector<SampleId>& ids) {
        return shared(subset(source, ids));
      },
      "source"_a, "ids"_a);
  module.def(
      "concat",
      [](const std::vector<SharedSource>& sources) {
        return shared(concat({sources.begin(), sources.end()}));
      },
      "sources"_a);
  module.def("random_split", random_split, nb::call_guard<Unlocked>(), "samples"_a, "shares"_a,
             "seed"_a);
}

}  // namespace

void bind_order(nb::module_& module) {
  bind_views(module);
  nb::class_<BoundOrder>(module, "SampleOrder")
      .def_prop_ro("samples", [](const BoundOrder& bound) { return bound.order->samples(); })
      .def_prop_ro("length", [](const BoundOrder& bound) { return bound.order->length(); })
      .def("describe", [](const BoundOrder& bound) { return bound.order->describe(); });
  module.def("weighted_order", weigh, "weights"_a, "length"_a, "replacement"_a);
  module.def(
      "class_balanced_order",
      [](const SharedSource& source, int64_t length) { return balance_classes(*source, length); },
      "source"_a, "length"_a);
  module.def("block_shuffled_order", shuffle_blocks, "samples"_a, "block"_a, "mixed"_a);
  module.def("repeated_order", repeat, "samples"_a, "repeats"_a, "length"_a);
  module.def("blend_order", blend, "sizes"_a, "first_positions"_a, "weights"_a, "length"_a);
  module.def("listed_order", listed_order, "samples"_a, "ids"_a);
}

}  // namespace stoker::python
