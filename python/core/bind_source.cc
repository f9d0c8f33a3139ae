#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "pipeline/source/growing_source.h"
#include "python/core/bind.h"
#include "python/core/bind_varying.h"
#include "python/core/python_lock.h"
#include "python/core/source_sample.h"

namespace stoker::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

bool is_growing(const Source& source) {
  const auto* growing = dynamic_cast<const GrowingSource*>(&source);
  return growing != nullptr && !growing->is_complete();
}

// Returns the source when it has all of its samples. Ctrl-C ends the wait.
const Source& complete(const Source& source) {
  const auto* growing = dynamic_cast<const GrowingSource*>(&source);
  bool is_complete = growing == nullptr || growing->is_complete();
  while (!is_complete) {
    {
      const Unlocked unlocked;
      is_complete = growing->is_complete(static_cast<int>(kSignalPoll.count()));
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  return source;
}

// Returns a source of the first samples, or null (None).
SharedSource first_samples(const Source& source, int64_t more_than) {
  const auto* growing = dynamic_cast<const GrowingSource*>(&source);
  if (growing == nullptr) return nullptr;
  return run_interruptible([&](const std::atomic<bool>& stop) {
    return shared(growing->first_samples(more_than, [&] { return !stop; }));
  });
}

SampleId checked_id(const Source& some, SampleId id) {
  const Source& source = complete(some);
  if (id >= 0 && id < source.size()) return id;
  throw nb::index_error(("sample " + std::to_string(id) + " of " + std::to_string(source.size()) +
                         " samples (0 to " + std::to_string(source.size() - 1) + ")")
                            .c_str());
}

SourceSample sample_at(const std::shared_ptr<Source>& source, int64_t index) {
  complete(*source);
  const bool from_end = index < 0 && index >= -source->size();
  return {source, checked_id(*source, from_end ? index + source->size() : index)};
}

int label_of(const std::shared_ptr<Source>& source, SampleId id) {
  checked_id(*source, id);
  const Unlocked unlocked;
  return read_label(source, id);
}

std::vector<std::string> notes_of(const Source& source) {
  std::vector<std::string> messages;
  for (const SourceNote& note : complete(source).notes()) messages.push_back(note.message);
  return messages;
}

// Returns None if each sample has its own size.
nb::object raw_size_of(const Source& source) {
  if (is_growing(source) || source.encoding() == SampleEncoding::image_file) return nb::none();
  return nb::make_tuple(source.raw_size().height, source.raw_size().width);
}

nb::object data_of(const SourceSample& sample) {
  if (sample.source->encoding() != SampleEncoding::image_file) return nb::none();
  std::vector<uint8_t> buffer;
  std::span<const uint8_t> bytes;
  {
    const Unlocked unlocked;
    bytes = read_sample(sample, buffer);
  }
  return nb::bytes(bytes.data(), bytes.size());
}

nb::dict pictures_of_sample(const SourceSample& sample) {
  nb::dict files;
  const auto pictures = sample.source->pictures();
  for (size_t i = 0; i < pictures.size(); ++i) {
    const char* const name = pictures[i].name.c_str();
    files[name] = nb::none();
    if (pictures[i].encoding != SampleEncoding::image_file) continue;
    std::vector<uint8_t> buffer;
    std::span<const uint8_t> bytes;
    {
      const Unlocked unlocked;
      bytes = read_picture_of(sample, i, buffer);
    }
    files[name] = nb::bytes(bytes.data(), bytes.size());
  }
  return files;
}

std::vector<std::string> source_pictures(const Source& source) {
  std::vector<std::string> names;
  for (const PictureInfo& each : complete(source).pictures()) names.push_back(each.name);
  return names;
}

nb::dict targets_of_sample(const SourceSample& sample) {
  std::vector<Array> arrays;
  {
    const Unlocked unlocked;
    arrays = read_sample_targets(sample);
  }
  nb::dict targets;
  const auto columns = sample.source->targets();
  for (size_t i = 0; i < columns.size(); ++i) {
    const Array& array = arrays[i];
    const char* const name = columns[i].name.c_str();
    if (columns[i].type == TargetType::text) {
      targets[name] = texts_of(
          {static_cast<const char*>(array.data), static_cast<size_t>(array.bytes())}, true);
    } else {
      targets[name] = array;
    }
  }
  return targets;
}

nb::dict source_targets(const Source& source) {
  nb::dict targets;
  for (const TargetColumn& column : complete(source).targets()) {
    nb::list shape;
    for (const int64_t extent : column.shape) shape.append(extent);
    if (column.varies) shape.append(nb::none());
    targets[column.name.c_str()] = nb::make_tuple(name_of(column.type), nb::tuple(shape));
  }
  return targets;
}

// For texts: nothing is read.
nb::object label_or_unknown(const SourceSample& sample) {
  take_unknown_label();
  const int label = sample.source->label(sample.id);
  if (take_unknown_label()) return nb::str("unknown");
  return nb::int_(label);
}

nb::str sample_text(const SourceSample& sample) {
  return nb::str(nb::str("stoker.Sample({!r}, label {})")
                     .attr("format")(sample.source->name(sample.id), label_or_unknown(sample)));
}

void bind_sample(nb::module_& module) {
  nb::class_<SourceSample>(module, "Sample",
                           "A sample of a source, by source[i]. Nothing is read before it is asked "
                           "for, and nothing is kept.")
      .def_prop_ro(
          "name", [](const SourceSample& s) { return s.source->name(s.id); }, "As Source.name().")
      .def_prop_ro(
          "label",
          [](const SourceSample& s) {
            const Unlocked unlocked;
            return read_label(s.source, s.id);
          },
          "As Source.label().")
      .def_prop_ro("data", data_of,
                   "The bytes of the encoded file, read now; None where pixels are stored raw. "
                   "OSError, with the name and the reason: they cannot be read.",
                   nb::sig("def data(self) -> bytes | None"))
      .def_prop_ro("pictures", pictures_of_sample,
                   "The bytes of its further pictures (stoker.with_pictures()) by name, as data. "
                   "OSError, with the names and the reason: one cannot be read.",
                   nb::sig("def pictures(self) -> dict[str, bytes | None]"))
      .def_prop_ro("targets", targets_of_sample,
                   "Its targets besides the label, by name: Arrays, as stoker.with_targets() gave "
                   "them; of texts a list of them. OSError: the sample cannot be read, or has no "
                   "values there.",
                   nb::sig("def targets(self) -> dict[str, Any]"))
      .def_prop_ro(
          "annotations", annotations_of_sample,
          "What lies on its picture, as the data have it: image_id, and lists with an "
          "entry for each object, as stoker.with_annotations() takes them (boxes 'xyxy', "
          "or 'xyxyxyxy' if they are rotated). {}: no objects. OSError: the sample cannot be "
          "read, or its annotation is broken.",
          nb::sig("def annotations(self) -> dict[str, Any]"))
      .def("image", decode_sample, nb::call_guard<Unlocked>(),
           "Reads and decodes the sample: an Array of (height, width, 3) uint8, RGB, as decode() "
           "gives it for the file.\n\n"
           "OSError: it cannot be read. DecodeError: it cannot be decoded. Both with the name and "
           "the reason.")
      .def("__repr__", sample_text);
}

}  // namespace

void bind_source(nb::module_& module) {
  bind_sample(module);
  nb::class_<Source>(module, "Source", nb::dynamic_attr(),
                     "Where samples come from: made by stoker.folder(), open(), tar(), memory() "
                     "and others. len(source) is the number of samples; a sample's id is 0 to "
                     "len(source) - 1. source[i] and iterating give a stoker.Sample.\n\n"
                     "A source never changes: copy.copy() and copy.deepcopy() give the source "
                     "itself. A pickle of it holds what it was made from, not its samples.")
      .def("__len__", [](const Source& source) { return complete(source).size(); })
      .def("__getitem__", sample_at, "id"_a,
           "Sample `id`, from the end if it is negative. IndexError if there is none.")
      .def(
          "__iter__", [](nb::handle source) { return nb::steal(PySeqIter_New(source.ptr())); },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[Sample]"))
      .def(
          "__copy__", [](nb::handle source) { return nb::borrow(source); },
          nb::sig("def __copy__(self) -> Source"))
      .def(
          "__deepcopy__", [](nb::handle source, nb::handle) { return nb::borrow(source); },
          "memo"_a, nb::sig("def __deepcopy__(self, memo: object) -> Source"))
      .def(
          "__repr__",
          [](nb::handle source) {
            return nb::module_::import_("stoker._shown").attr("source_text")(source);
          },
          nb::sig("def __repr__(self) -> str"))
      .def(
          "_repr_html_",
          [](nb::handle source) {
            return nb::module_::import_("stoker._shown").attr("source_html")(source);
          },
          nb::sig("def _repr_html_(self) -> str"))
      .def(
          "__reduce__",
          [](nb::handle source) {
            return nb::module_::import_("stoker._recipe").attr("reduce")(source);
          },
          nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"))
      .def(
          "name", [](const Source& s, SampleId id) { return s.name(checked_id(s, id)); }, "id"_a,
          "The sample's name; of a file: its path relative to root. IndexError if there is none.")
      .def_prop_ro(
          "annotations",
          [](const Source& source) { return annotations_of_source(complete(source)); },
          "The kinds of what lies on the pictures (with_annotations()): 'objects', "
          "'rotated', 'masks' and 'label_image' (True or False), 'keypoints' (of each "
          "object), 'class_names', 'keypoint_names'. {}: nothing.",
          nb::sig("def annotations(self) -> dict[str, Any]"))
      .def_prop_ro("pictures", source_pictures,
                   "The names of every sample's pictures besides its own (with_pictures()); []: "
                   "there are none.",
                   nb::sig("def pictures(self) -> list[str]"))
      .def_prop_ro("targets", source_targets,
                   "The type and the shape (of one sample) of each target besides the label, by "
                   "name: {'tags': ('float32', (40,))}. Empty if there are none.",
                   nb::sig("def targets(self) -> dict[str, tuple[str, tuple[int | None, ...]]]"))
      .def("label", label_of, "id"_a,
           "The sample's label. IndexError if there is none. Of stoker.dataset() without labels=: "
           "the sample is read now if it was not before.")
      .def(
          "labels", [](const Source& source) { return known_labels(complete(source)); },
          "All labels, as a list of int, by sample id. ValueError if they are known only when the "
          "samples are read: see stoker.dataset().")
      .def_prop_ro(
          "root", [](const Source& source) { return source.root(); },
          "The folder that names are relative to; '' if none.")
      .def_prop_ro(
          "classes", [](const Source& source) { return complete(source).class_names(); },
          "Class names, by label.")
      .def_prop_ro("raw_size", raw_size_of,
                   "(height, width) of every sample where pixels are stored raw; None for image "
                   "files.",
                   nb::sig("def raw_size(self) -> tuple[int, int] | None"))
      .def_prop_ro(
          "notes", notes_of,
          "What its user may not expect: files that are left out, pictures with two labels, "
          "images in compressed pages; a sentence each, with numbers and the first name. "
          "Opening the source warns of the same.")
      .def_prop_ro(
          "fingerprint", [](const Source& source) { return complete(source).fingerprint(); },
          "A number that changes when the list of samples or labels does.")
      .def_prop_ro("is_growing", is_growing,
                   "Whether the list of samples is still being made: stoker.open(wait=False).")
      .def(
          "first_samples", first_samples, "more_than"_a,
          "A source of the first samples while the list is being made: more than so many of them, "
          "with the numbers, names and labels that they have in the whole; waits for them. None if "
          "the list is complete, or nothing is final before it is: then use this source.",
          nb::sig("def first_samples(self, more_than: int) -> Source | None"));
  module.def(
      "wait_for", [](const Source& source) { complete(source).size(); }, "source"_a);
  // As batches have it: 0 if it is not known.
  module.def(
      "label_in_batch",
      [](const Source& source, SampleId id) { return source.label(checked_id(source, id)); },
      "source"_a, "id"_a);
}

}  // namespace stoker::python
