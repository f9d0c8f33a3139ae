// Annotations of pictures: sets that a program gives, and those of a sample.
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "pipeline/annotation/run_lengths.h"
#include "pipeline/source/annotated/annotation_set.h"
#include "pipeline/source/annotated/check_annotations.h"
#include "pipeline/source/annotated/picture_code.h"
#include "python/core/bind.h"
#include "python/core/python_lock.h"
#include "python/core/source_sample.h"

namespace stoker::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

// A box (x0, y0, x1, y1), a label, an id, an area and whether it is a crowd.
using ObjectTuple = std::tuple<std::array<double, 4>, int64_t, int64_t, double, bool>;
// The points of each polygon, and run lengths: one of them is empty.
using MaskTuple =
    std::tuple<std::vector<std::vector<std::array<double, 2>>>, std::vector<uint32_t>>;

struct GivenPicture {
  std::string name;
  std::optional<std::array<int, 2>> size;  // width, height
  std::vector<ObjectTuple> objects;
  std::vector<std::array<double, 8>> corners;    // one for each object, or none
  std::vector<std::array<double, 3>> keypoints;  // of one object after the other
  std::vector<MaskTuple> masks;                  // one for each object, or none
  std::string label_file;
  int64_t picture_id;

  bool fits(const AnnotationInfo& info) const {
    return corners.size() == (info.rotated ? objects.size() : 0) &&
           keypoints.size() == objects.size() * static_cast<size_t>(info.keypoints) &&
           (masks.empty() || masks.size() == objects.size());
  }
};
// Its members, as Python gives them.
using PictureTuple =
    std::tuple<std::string, std::optional<std::array<int, 2>>, std::vector<ObjectTuple>,
               std::vector<std::array<double, 8>>, std::vector<std::array<double, 3>>,
               std::vector<MaskTuple>, std::string, int64_t>;

GivenPicture given_picture(PictureTuple tuple) {
  return std::apply([](auto&... parts) { return GivenPicture{std::move(parts)...}; }, tuple);
}

MaskShape add_mask(const MaskTuple& given, Annotations& out) {
  const auto& [polygons, runs] = given;
  if (polygons.empty()) {
    const auto first = static_cast<uint32_t>(out.runs.size());
    out.runs.insert(out.runs.end(), runs.begin(), runs.end());
    return {runs.empty() ? MaskKind::none : MaskKind::runs, first,
            static_cast<uint32_t>(runs.size())};
  }
  const auto first = static_cast<uint32_t>(out.polygons.size());
  for (const auto& points : polygons) {
    out.polygons.push_back(
        {static_cast<uint32_t>(out.points.size()), static_cast<uint32_t>(points.size())});
    out.points.insert(out.points.end(), points.begin(), points.end());
  }
  return {MaskKind::polygons, first, static_cast<uint32_t>(polygons.size())};
}

Annotations annotations_of(const AnnotationInfo& info, const GivenPicture& given) {
  if (!given.fits(info)) throw std::invalid_argument("annotations_of");
  Annotations out;
  out.picture_id = given.picture_id;
  if (given.size) out.size = {(*given.size)[0], (*given.size)[1]};
  for (const auto& [box, label, id, area, is_crowd] : given.objects) {
    const auto index = static_cast<int32_t>(out.objects.size());
    AnnotatedObject object{box, label, id, area, is_crowd, {}, index};
    if (!given.masks.empty()) object.mask = add_mask(given.masks[out.objects.size()], out);
    out.objects.push_back(object);
  }
  out.corners = given.corners;
  for (const auto& [x, y, visibility] : given.keypoints)
    out.keypoints.push_back({x, y, visibility});
  return out;
}

// Throws std::invalid_argument, with the picture's name, for annotations that nobody could use.
void add_picture(AnnotationSetBuilder& builder, const AnnotationInfo& info, PictureTuple picture) {
  const GivenPicture given = given_picture(std::move(picture));
  const Annotations annotations = annotations_of(info, given);
  const std::string problem = annotation_problem(info, annotations);
  if (!problem.empty()) throw std::invalid_argument(given.name + ": " + problem);
  builder.add({.name = given.name, .annotations = &annotations, .label_file = given.label_file});
}

// Says nothing against what nobody could use: whoever reads the bytes does.
nb::bytes picture_bytes(const AnnotationInfo& info, PictureTuple picture) {
  const GivenPicture given = given_picture(std::move(picture));
  const Annotations annotations = annotations_of(info, given);
  std::string bytes;
  append_picture(info,
                 {.name = given.name, .annotations = &annotations, .label_file = given.label_file},
                 bytes);
  return nb::bytes(bytes.data(), bytes.size());
}

AnnotationInfo info_of(bool objects, bool rotated, bool masks, int keypoints, int label_bytes,
                       const std::vector<std::string>& class_names,
                       const std::vector<std::string>& keypoint_names) {
  return {.objects = objects,
          .rotated = rotated,
          .masks = masks,
          .keypoints = keypoints,
          .label_image = label_bytes > 0,
          .label_bytes = std::max(label_bytes, 1),
          .class_names = class_names,
          .keypoint_names = keypoint_names};
}

nb::dict kinds_of(const AnnotationInfo& info) {
  nb::dict dict;
  dict["objects"] = info.objects;
  dict["rotated"] = info.rotated;
  dict["masks"] = info.masks;
  dict["keypoints"] = info.keypoints;
  dict["label_image"] = info.label_image;
  dict["class_names"] = info.class_names;
  dict["keypoint_names"] = info.keypoint_names;
  return dict;
}

// Returns the run lengths of a mask of bytes, row-major; those that are not 0 are set.
std::vector<uint32_t> plane_runs(const nb::bytes& pixels, size_t height, size_t width) {
  if (pixels.size() != height * width) throw std::invalid_argument("plane_runs");
  std::vector<uint32_t> runs(1);
  const auto* bytes = reinterpret_cast<const uint8_t*>(pixels.c_str());
  bool is_set = false;
  for (size_t x = 0; x < width; ++x) {
    for (size_t y = 0; y < height; ++y) {
      if ((bytes[y * width + x] != 0) != is_set) runs.push_back(0), is_set = !is_set;
      ++runs.back();
    }
  }
  return runs;
}

nb::list mask_of(const Annotations& from, const MaskShape& mask) {
  nb::list list;
  for (uint32_t i = mask.first; i < mask.first + mask.count; ++i) {
    if (mask.kind == MaskKind::runs) {
      list.append(from.runs[i]);
      continue;
    }
    nb::list points;
    const Polygon& polygon = from.polygons[i];
    for (uint32_t k = polygon.first; k < polygon.first + polygon.count; ++k) {
      points.append(from.points[k][0]);
      points.append(from.points[k][1]);
    }
    list.append(points);
  }
  return list;
}

}  // namespace

nb::dict annotations_of_sample(const SourceSample& sample) {
  Annotations read;
  {
    const Unlocked unlocked;
    const RowNote note{.pixels_of = sample.id};
    const ReadStatus status = read_row_annotations(*sample.source, note, read);
    if (!status.ok) throw UnreadableSample(sample.source->name(sample.id) + ": " + status.message);
  }
  const AnnotationInfo& info = sample.source->annotations();
  nb::dict dict;
  if (!info.objects) return dict;
  nb::list boxes, labels, ids, areas, crowds, masks, keypoints;
  for (size_t i = 0; i < read.objects.size(); ++i) {
    const AnnotatedObject& object = read.objects[i];
    boxes.append(info.rotated ? nb::cast(read.corners[i]) : nb::cast(object.box));
    labels.append(object.label);
    ids.append(object.id);
    areas.append(object.area);
    crowds.append(object.is_crowd);
    if (info.masks) masks.append(mask_of(read, object.mask));
    nb::list points;
    for (int k = 0; k < info.keypoints; ++k) {
      const Keypoint& point = read.keypoints[i * static_cast<size_t>(info.keypoints) + k];
      points.append(nb::make_tuple(point.x, point.y, point.visibility));
    }
    if (info.keypoints > 0) keypoints.append(points);
  }
  dict["image_id"] = read.picture_id;
  dict["boxes"] = boxes;
  dict["labels"] = labels;
  dict["ids"] = ids;
  dict["area"] = areas;
  dict["iscrowd"] = crowds;
  if (info.masks) dict["masks"] = masks;
  if (info.keypoints > 0) dict["keypoints"] = keypoints;
  return dict;
}

nb::dict annotations_of_source(const Source& source) {
  return source.annotations().any() ? kinds_of(source.annotations()) : nb::dict();
}

void bind_annotations(nb::module_& module) {
  nb::class_<AnnotationInfo>(module, "AnnotationInfo")
      .def(nb::new_(&info_of), "objects"_a, "rotated"_a, "masks"_a, "keypoints"_a, "label_bytes"_a,
           "class_names"_a, "keypoint_names"_a);
  nb::class_<AnnotationSetBuilder>(module, "AnnotationSetBuilder")
      .def(nb::init<AnnotationInfo>(), "info"_a)
      .def("add", add_picture, "info"_a, "picture"_a);
  module.def("picture_bytes", picture_bytes, "info"_a, "picture"_a);
  module.def(
      "box_corners",
      [](BoxFormat format, const std::vector<double>& box) {
        if (std::ssize(box) != box_numbers(format)) throw std::invalid_argument("box_corners");
        return box_corners(format, box);
      },
      "format"_a, "box"_a);
  module.def("plane_runs", plane_runs, "pixels"_a, "height"_a, "width"_a);
  module.def(
      "text_runs",
      [](const std::string& text) {
        std::vector<uint32_t> runs;
        const std::string problem = append_text_runs(text, runs);
        if (!problem.empty()) throw std::invalid_argument(problem);
        return runs;
      },
      "text"_a);
}

}  // namespace stoker::python
