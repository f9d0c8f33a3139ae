#include "tests/support/same_annotations.h"

#include <charconv>

namespace stoker {
namespace {

void add_number(std::string& text, double value) {
  char digits[32];
  text.append(" ").append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

void add_mask(std::string& text, const Annotations& annotations, const MaskShape& mask) {
  for (uint32_t i = mask.first; i < mask.first + mask.count; ++i) {
    if (mask.kind == MaskKind::runs) {
      text += (i == mask.first ? " runs " : ",") + std::to_string(annotations.runs[i]);
      continue;
    }
    text += " polygon";
    const Polygon& polygon = annotations.polygons[i];
    for (uint32_t k = polygon.first; k < polygon.first + polygon.count; ++k) {
      for (const double value : annotations.points[k]) add_number(text, value);
    }
  }
}

}  // namespace

std::string describe(const Annotations& annotations) {
  std::string text =
      std::to_string(annotations.size.width) + "x" + std::to_string(annotations.size.height) + "\n";
  const size_t objects = annotations.objects.size();
  const size_t points = objects == 0 ? 0 : annotations.keypoints.size() / objects;
  for (size_t i = 0; i < objects; ++i) {
    const AnnotatedObject& object = annotations.objects[i];
    text += std::to_string(object.index) + ": id " + std::to_string(object.id) + " class " +
            std::to_string(object.label) + (object.is_crowd ? " crowd" : "") + " box";
    for (const double side : object.box) add_number(text, side);
    text += " area";
    add_number(text, object.area);
    if (!annotations.corners.empty()) {
      text += " corners";
      for (const double corner : annotations.corners[i]) add_number(text, corner);
    }
    for (size_t k = i * points; k < (i + 1) * points; ++k) {
      const Keypoint& point = annotations.keypoints[k];
      text += " point";
      for (const double value : {point.x, point.y, point.visibility}) add_number(text, value);
    }
    add_mask(text, annotations, object.mask);
    text += "\n";
  }
  return text;
}

}  // namespace stoker
