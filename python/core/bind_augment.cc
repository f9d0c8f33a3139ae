#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "pipeline/augment.h"
#include "pipeline/augment/unmoved_targets.h"
#include "python/core/bind.h"

namespace stoker::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

SizeTuple size_tuple(Size size) { return {size.height, size.width}; }
Size size_of(SizeTuple size) { return {std::get<1>(size), std::get<0>(size)}; }

// Without a size of rows, which the list alone need not say.
AugmentSpec list_of(const std::string& stages) {
  AugmentSpec spec;
  spec.set_stages(stages);
  return spec;
}

// Returns the size of the first view that the list ends with; none: it depends on the images or on
// the Loader.
std::optional<SizeTuple> own_size(const std::string& stages) {
  const std::optional<Size> size = list_of(stages).stages.size({}, {});
  return size && *size != Size{} ? std::optional(size_tuple(*size)) : std::nullopt;
}

std::string draw(const AugmentSpec& spec, SizeTuple source, uint64_t seed, int64_t epoch,
                 int64_t sample, int view) {
  if (view < 0 || view >= spec.views()) {
    throw std::invalid_argument("view is " + std::to_string(view) + " of " +
                                std::to_string(spec.views()) + " views");
  }
  if (spec.combines()) {
    throw std::invalid_argument("augment: '" + spec.stages_text() +
                                "' makes rows of several samples: a Loader draws them, and "
                                "Batch.draws has them");
  }
  Draws draws;
  draw_augmentation(spec, size_of(source), seed, epoch, sample, draws, view);
  if (!draws.failure().empty()) throw std::invalid_argument(draws.failure());
  return steps_text(draws.steps());
}

// Returns the parameter as a function of Python has it: "size: int | tuple[int, int] | None =
// None".
std::string python_parameter(const Parameter& parameter) {
  const bool is_word =
      parameter.kind == ArgumentKind::choice || parameter.kind == ArgumentKind::text;
  const std::string name = parameter.name, quote = is_word ? "'" : "";
  if (parameter.kind == ArgumentKind::stages) {
    return (parameter.high > 1 ? "*" : "") + name + ": Augment" +
           (parameter.otherwise ? " | None = None" : "");
  }
  static constexpr const char* kTypes[] = {"float",
                                           "int",
                                           "float | tuple[float, float]",
                                           "float | tuple[float, float]",
                                           "int | tuple[int, int]",
                                           "int | tuple[int, int]",
                                           "int | tuple[int, int, int]",
                                           "float | Sequence[float]",
                                           "str",
                                           "bool",
                                           "str | PathLike[str]"};
  const std::string typed = name + ": " + kTypes[static_cast<size_t>(parameter.kind)];
  if (!parameter.otherwise) return typed;
  if (!*parameter.otherwise) return typed + " | None = None";
  return typed + " = " + quote + parameter.otherwise + quote;
}

// name, documentation, parameters
using StageTuple = std::tuple<std::string, std::string, std::vector<std::string>>;

std::vector<StageTuple> stage_table() {
  std::vector<StageTuple> table;
  for (const StageType* type : all_stages()) {
    std::vector<std::string> parameters;
    for (const Parameter& each : type->parameters) parameters.push_back(python_parameter(each));
    if (type->name == std::string("pictures")) parameters = {"image: Augment", "**others: Augment"};
    const std::string details = *type->details ? std::string("\n\n") + type->details : "";
    table.emplace_back(type->name, std::string(type->help) + "." + details, std::move(parameters));
  }
  return table;
}

}  // namespace

void bind_augment(nb::module_& module) {
  nb::class_<AugmentSpec>(module, "AugmentSpec")
      .def(
          "__init__",
          [](AugmentSpec* spec, const std::string& stages, SizeTuple size) {
            new (spec) AugmentSpec(stages, size_of(size));
          },
          "stages"_a, "size"_a)
      .def_prop_ro("size", [](const AugmentSpec& spec) { return size_tuple(spec.output); })
      .def_prop_ro("text", &AugmentSpec::stages_text)
      .def_prop_ro("views", &AugmentSpec::own_views)
      .def("draw", draw, "source"_a, "seed"_a, "epoch"_a, "sample"_a, "view"_a)
      .def("explain", explain_augmentation)
      .def("describe", &AugmentSpec::describe);
  module.def(
      "canonical_stages", [](const std::string& text) { return list_of(text).stages_text(); },
      "stages"_a);
  // A sentence, or "".
  module.def("unmoved_targets", unmoved_targets, "source"_a, "augment"_a);
  module.def("own_size", own_size, "stages"_a);
  module.def(
      "view_count", [](const std::string& text) { return list_of(text).own_views(); }, "stages"_a);
  // (name, documentation, ["p: float = 1", ...]) of each.
  module.def("stage_table", stage_table);
}

}  // namespace stoker::python
