#include "pipeline/source/annotated/check_annotations.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>

#include "pipeline/annotation/run_lengths.h"

namespace stoker {
namespace {

// Pixels. A polygon is drawn from point to point, so that its extent costs time.
constexpr double kMaxCoordinate = 1e6;

bool is_coordinate(double value) { return std::abs(value) <= kMaxCoordinate; }  // NaN is none

// As few digits as give the number.
std::string digits_of(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

template <typename Numbers>
std::string in_brackets(const Numbers& numbers) {
  std::string text;
  for (const double number : numbers) text += (text.empty() ? "" : ", ") + digits_of(number);
  return "(" + text + ")";
}

std::string box_problem(const std::array<double, 4>& box) {
  if (!std::ranges::all_of(box, is_coordinate)) {
    return "the box has a number that is no coordinate: " + in_brackets(box);
  }
  if (box[2] < box[0]) return "the box has a negative width: " + in_brackets(box);
  if (box[3] < box[1]) return "the box has a negative height: " + in_brackets(box);
  return "";
}

std::string label_problem(const std::vector<std::string>& class_names, int64_t label) {
  const std::string number = std::to_string(label);
  if (label < 0) return "the class is " + number;
  if (class_names.empty()) return "";
  if (label < std::ssize(class_names) && !class_names[static_cast<size_t>(label)].empty()) {
    return "";
  }
  return "the class is " + number + ", which is none of the data's classes";
}

std::string polygon_problem(const Annotations& annotations, const Polygon& polygon) {
  if (polygon.count < 3) {
    return "a polygon of " + std::to_string(polygon.count) + " points, must be 3 or more";
  }
  for (uint32_t i = 0; i < polygon.count; ++i) {
    const auto& point = annotations.points[polygon.first + i];
    if (std::ranges::all_of(point, is_coordinate)) continue;
    return "a polygon has a point that is none: " + in_brackets(point);
  }
  return "";
}

std::string mask_problem(const Annotations& annotations, const MaskShape& mask) {
  if (mask.kind == MaskKind::runs) {
    return check_runs(std::span(annotations.runs).subspan(mask.first, mask.count),
                      annotations.size);
  }
  if (mask.kind != MaskKind::polygons) return "";
  for (uint32_t i = 0; i < mask.count; ++i) {
    std::string problem = polygon_problem(annotations, annotations.polygons[mask.first + i]);
    if (!problem.empty()) return problem;
  }
  return "";
}

std::string keypoint_problem(std::span<const Keypoint> points) {
  for (const Keypoint& point : points) {
    const std::array values = {point.x, point.y, point.visibility};
    if (std::ranges::all_of(values, is_coordinate)) continue;
    return "a keypoint has a number that is none: " + in_brackets(values);
  }
  return "";
}

std::string object_problem(const AnnotationInfo& info, const Annotations& annotations,
                           size_t place) {
  const AnnotatedObject& object = annotations.objects[place];
  std::string problem = box_problem(object.box);
  if (problem.empty()) problem = label_problem(info.class_names, object.label);
  if (problem.empty() && !(object.area >= 0 && std::isfinite(object.area))) {
    problem = "the area is " + digits_of(object.area);
  }
  if (problem.empty() && info.rotated &&
      !std::ranges::all_of(annotations.corners[place], is_coordinate)) {
    problem = "the rotated box has a number that is no coordinate: " +
              in_brackets(annotations.corners[place]);
  }
  const auto points = static_cast<size_t>(info.keypoints);
  if (problem.empty() && points > 0) {
    problem = keypoint_problem(std::span(annotations.keypoints).subspan(place * points, points));
  }
  return problem.empty() ? mask_problem(annotations, object.mask) : problem;
}

bool covers_a_pixel(const Annotations& annotations, const MaskShape& mask, Size picture) {
  std::vector<uint32_t> runs;
  for (uint32_t i = 0; i < mask.count; ++i) {
    const Polygon& polygon = annotations.polygons[mask.first + i];
    runs.clear();
    append_polygon_runs(std::span(annotations.points).subspan(polygon.first, polygon.count),
                        picture, runs);
    for (size_t run = 1; run < runs.size(); run += 2) {
      if (runs[run] > 0) return true;
    }
  }
  return false;
}

std::string oddity_of(const Annotations& annotations, const AnnotatedObject& object, Size picture) {
  constexpr double kTolerance = 1;  // pixels; boxes of real data are rounded
  const auto [x0, y0, x1, y1] = object.box;
  if (x0 < -kTolerance || y0 < -kTolerance || x1 > picture.width + kTolerance ||
      y1 > picture.height + kTolerance) {
    return "the box " + in_brackets(object.box) + " reaches out of the picture of " +
           std::to_string(picture.width) + " x " + std::to_string(picture.height) + " pixels";
  }
  if (object.mask.kind == MaskKind::polygons &&
      !covers_a_pixel(annotations, object.mask, picture)) {
    return "its polygons cover no pixel";
  }
  return "";
}

}  // namespace

std::string oddity_in_picture(const Annotations& annotations, Size picture) {
  for (const AnnotatedObject& object : annotations.objects) {
    const std::string oddity = oddity_of(annotations, object, picture);
    if (!oddity.empty()) return object_words(object) + oddity;
  }
  return "";
}

std::string object_words(const AnnotatedObject& object) {
  return "object " + std::to_string(object.index) + " (id " + std::to_string(object.id) + "): ";
}

std::string annotation_problem(const AnnotationInfo& info, const Annotations& annotations) {
  if (annotations.size.width < 0 || annotations.size.height < 0) {
    return "the picture's size is " + std::to_string(annotations.size.width) + " x " +
           std::to_string(annotations.size.height);
  }
  for (size_t i = 0; i < annotations.objects.size(); ++i) {
    const std::string problem = object_problem(info, annotations, i);
    if (!problem.empty()) return object_words(annotations.objects[i]) + problem;
  }
  return "";
}

}  // namespace stoker
