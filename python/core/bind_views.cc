// Sources that show the samples of others: parts, several as one, with targets, with other labels.
// They keep what they show.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <numeric>
#include <stdexcept>

#include "pipeline/files/digest.h"
#include "pipeline/source/annotated/annotation_set.h"
#include "pipeline/source/annotated_source.h"
#include "pipeline/source/concat_source.h"
#include "pipeline/source/forwarding_source.h"
#include "pipeline/source/label_image_source.h"
#include "pipeline/source/pictures_source.h"
#include "pipeline/source/subset_source.h"
#include "pipeline/source/target_source.h"
#include "python/core/array.h"
#include "python/core/bind.h"
#include "python/core/python_lock.h"

namespace stoker::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

// A view and the sources that it shows, which must outlive it: members end in reverse order.
template <class View>
struct KeptView {
  std::vector<std::shared_ptr<const Source>> shown;
  View view;
};

template <class View, class... Arguments>
SharedSource view_that_keeps(std::vector<std::shared_ptr<const Source>> shown,
                             Arguments&&... arguments) {
  const std::shared_ptr<const KeptView<View>> kept(
      new KeptView<View>{std::move(shown), View(std::forward<Arguments>(arguments)...)});
  return shared(std::shared_ptr<const Source>(kept, &kept->view));
}

SharedSource part_of(const SharedSource& source, const std::vector<SampleId>& ids) {
  return view_that_keeps<SubsetSource>({source}, *source, ids);
}

SharedSource all_of(const std::vector<SharedSource>& sources) {
  std::vector<const Source*> shown;
  for (const SharedSource& source : sources) shown.push_back(source.get());
  return view_that_keeps<ConcatSource>({sources.begin(), sources.end()}, std::move(shown));
}

class RelabelledSource final : public ForwardingSource {
 public:
  RelabelledSource(std::shared_ptr<const Source> source, std::vector<int32_t> labels,
                   std::vector<std::string> class_names)
      : ForwardingSource(*source),
        kept_(std::move(source)),
        labels_(std::move(labels)),
        info_(source_.info()) {
    info_.class_names = std::move(class_names);
    info_.knows_labels = true;
    std::string text = "relabelled " + std::to_string(source_.fingerprint());
    for (const std::string& name : info_.class_names) text += "\n" + name;
    text.append(reinterpret_cast<const char*>(labels_.data()), labels_.size() * sizeof(int32_t));
    info_.fingerprint = text_digest(text);
  }

  const SourceInfo& info() const override { return info_; }
  int label(SampleId id) const override { return labels_[static_cast<size_t>(id)]; }
  void read_targets(SampleId id, std::span<const uint8_t> bytes,
                    SampleTargets& out) const override {
    source_.read_targets(id, bytes, out);
    out.label = label(id);
  }
  const SampleStorage& storage() const override { return source_.storage(); }
  uint64_t labels_digest() const override { return Source::labels_digest(); }

 private:
  const std::shared_ptr<const Source> kept_;
  const std::vector<int32_t> labels_;
  SourceInfo info_;
};

// `labels`: one per sample.
SharedSource relabel(const SharedSource& source, std::vector<int32_t> labels,
                     std::vector<std::string> class_names) {
  if (std::ssize(labels) != source->size()) {
    throw std::invalid_argument(std::to_string(labels.size()) + " labels for " +
                                std::to_string(source->size()) + " samples");
  }
  return std::make_shared<RelabelledSource>(source, std::move(labels), std::move(class_names));
}

// A table of targets: the column's name and type, the shape of one sample, and an object with the
// values in one piece of memory, which do not change; of a target that varies a tuple of them and
// of where each sample's end (int64).
using TableTuple = std::tuple<std::string, std::string, std::vector<int64_t>, nb::object>;

std::span<const std::byte> bytes_of_buffer(nb::handle values) {
  Py_buffer view;
  if (PyObject_GetBuffer(values.ptr(), &view, PyBUF_C_CONTIGUOUS) != 0) throw nb::python_error();
  const std::span bytes(static_cast<const std::byte*>(view.buf), static_cast<size_t>(view.len));
  PyBuffer_Release(&view);
  return bytes;
}

TargetTable table_of(const TableTuple& given) {
  const auto& [name, type, shape, values] = given;
  TargetTable table{.column = {name, target_type_named(type), shape}};
  if (nb::isinstance<nb::tuple>(values)) {
    table.column.varies = true;
    table.values = bytes_of_buffer(values[0]);
    const auto ends = bytes_of_buffer(values[1]);
    table.ends = {reinterpret_cast<const int64_t*>(ends.data()), ends.size() / sizeof(int64_t)};
  } else {
    table.values = bytes_of_buffer(values);
  }
  table.owner = keep_object(values);
  return table;
}

SharedSource with_targets(const SharedSource& source, const std::vector<TableTuple>& given) {
  std::vector<TargetTable> tables;
  for (const TableTuple& each : given) tables.push_back(table_of(each));
  const Unlocked unlocked;  // the values are read once, which may take long
  return view_that_keeps<TargetSource>({source}, *source, std::move(tables));
}

// The pictures of the set are the samples, in their order.
SharedSource with_annotations(const SharedSource& source, AnnotationSetBuilder& builder) {
  const Unlocked unlocked;
  SampleAnnotations annotations{.set = builder.finish()};
  annotations.pictures.resize(static_cast<size_t>(source->size()));
  std::iota(annotations.pictures.begin(), annotations.pictures.end(), 0);
  return view_that_keeps<AnnotatedSource>({source}, *source, std::move(annotations));
}

SharedSource with_label_images(const SharedSource& source, const SharedSource& label_images) {
  return view_that_keeps<LabelImageSource>({source, label_images}, *source, *label_images);
}

// `others`: the name and the source of each further picture.
SharedSource with_pictures(const SharedSource& source,
                           const std::vector<std::pair<std::string, SharedSource>>& others) {
  std::vector<NamedPictures> pictures;
  for (const auto& [name, other] : others) pictures.push_back({name, other});
  const Unlocked unlocked;  // a source whose list is still being made is waited for
  return shared(std::make_shared<PicturesSource>(source, std::move(pictures)));
}

}  // namespace

void bind_views(nb::module_& module) {
  module.def("with_pictures", with_pictures, "source"_a, "others"_a);
  module.def("with_annotations", with_annotations, "source"_a, "builder"_a);
  module.def("with_label_images", with_label_images, "source"_a, "label_images"_a);
  module.def("with_targets", with_targets, "source"_a, "tables"_a);
  module.def("subset", part_of, "source"_a, "ids"_a);
  module.def("concat", all_of, "sources"_a);
  module.def("relabel", relabel, "source"_a, "labels"_a, "class_names"_a);
  module.def("random_split", random_split, nb::call_guard<Unlocked>(), "samples"_a, "shares"_a,
             "seed"_a);
}

}  // namespace stoker::python
