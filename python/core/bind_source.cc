#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "pipeline/source/cifar_source.h"
#include "pipeline/source/folder_source.h"
#include "pipeline/source/synthetic_source.h"
#include "python/core/bind.h"
#include "python/core/relabelled_source.h"
#include "python/core/unlocked.h"

namespace stoker::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

// nanobind holds non-const pointers, but a Source is const for all its users.
using SharedSource = std::shared_ptr<Source>;

SharedSource shared(std::shared_ptr<const Source> source) {
  return std::const_pointer_cast<Source>(std::move(source));
}

SampleId checked(const Source& source, SampleId id) {
  if (id >= 0 && id < source.size()) return id;
  throw nb::index_error(("sample " + std::to_string(id) + " of " + std::to_string(source.size()) +
                         " samples (0 to " + std::to_string(source.size() - 1) + ")")
                            .c_str());
}

std::vector<int> labels_of(const Source& source) {
  std::vector<int> labels(static_cast<size_t>(source.size()));
  for (size_t id = 0; id < labels.size(); ++id)
    labels[id] = source.label(static_cast<SampleId>(id));
  return labels;
}

// Returns None if each sample has its own size.
nb::object raw_size_of(const Source& source) {
  if (source.encoding() == SampleEncoding::image_file) return nb::none();
  return nb::make_tuple(source.raw_size().height, source.raw_size().width);
}

}  // namespace

void bind_source(nb::module_& module) {
  nb::class_<Source>(module, "Source",
                     "Where samples come from: made by stoker.folder(), cifar(), synthetic() or "
                     "open(). len(source) is the number of samples; a sample's id is 0 to "
                     "len(source) - 1.")
      .def("__len__", &Source::size)
      .def(
          "name", [](const Source& s, SampleId id) { return s.name(checked(s, id)); }, "id"_a,
          "The sample's name; of a file: its path relative to root. IndexError if there is none.")
      .def(
          "label", [](const Source& s, SampleId id) { return s.label(checked(s, id)); }, "id"_a,
          "The sample's label. IndexError if there is none.")
      .def("labels", labels_of, "All labels, as a list of int, by sample id.")
      .def_prop_ro("root", &Source::root, "The folder that names are relative to; '' if none.")
      .def_prop_ro("classes", &Source::class_names, "Class names, by label.")
      .def_prop_ro("raw_size", raw_size_of,
                   "(height, width) of every sample where pixels are stored raw; None for image "
                   "files.",
                   nb::sig("def raw_size(self) -> tuple[int, int] | None"))
      .def_prop_ro(
          "notes",
          [](const Source& source) {
            std::vector<std::string> messages;
            for (const SourceNote& note : source.notes()) messages.push_back(note.message);
            return messages;
          },
          "What the source leaves out, and what it lists under two labels: a sentence each, with "
          "numbers and the first file's name. Opening the source warns of the same.")
      .def_prop_ro("fingerprint", &Source::fingerprint,
                   "A number that changes when the list of samples or labels does.");
  module.def(
      "folder",
      [](const std::string& path, Split split) {
        return SharedSource(make_folder_source(path, {.split = split}));
      },
      nb::call_guard<Unlocked>(), "path"_a, "split"_a);
  module.def(
      "cifar",
      [](const std::string& path, Split split) {
        return SharedSource(make_cifar_source(path, split));
      },
      nb::call_guard<Unlocked>(), "path"_a, "split"_a);
  module.def(
      "open",
      [](const std::string& path, Split split) { return SharedSource(open_source(path, split)); },
      nb::call_guard<Unlocked>(), "path"_a, "split"_a);
  module.def("is_cifar_folder", is_cifar_folder, "path"_a);
  module.def(
      "synthetic",
      [](int64_t samples, int height, int width, int classes, uint64_t seed) {
        return SharedSource(make_synthetic_source(samples, {width, height}, classes, seed));
      },
      nb::call_guard<Unlocked>(), "samples"_a, "height"_a, "width"_a, "classes"_a, "seed"_a);
  module.def(
      "relabel",
      [](const SharedSource& source, std::vector<int32_t> labels,
         std::vector<std::string> class_names) {
        return shared(relabel(source, std::move(labels), std::move(class_names)));
      },
      "source"_a, "labels"_a, "class_names"_a);
}

}  // namespace stoker::python
