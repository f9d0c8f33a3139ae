#include "pipeline/source/annotated/object_scanner.h"

#include <cmath>
#include <limits>

#include "pipeline/annotation/run_lengths.h"

namespace stoker {

void ScannedObject::set_missing_area() {
  if (has_area) return;
  object.area = (object.box[2] - object.box[0]) * (object.box[3] - object.box[1]);
}

std::array<double, 4> upright_box(BoxFormat format, std::span<const double> box) {
  if (format == BoxFormat::xyxy) return {box[0], box[1], box[2], box[3]};
  const bool is_centre = format == BoxFormat::cxcywh;
  const double x = is_centre ? box[0] - box[2] / 2 : box[0];
  const double y = is_centre ? box[1] - box[3] / 2 : box[1];
  return {x, y, x + box[2], y + box[3]};
}

int side_of(double number) {
  return number >= 0 && number <= std::numeric_limits<int>::max() ? static_cast<int>(number) : -1;
}

std::string mask_size_problem(const MaskShape& mask, Size of_runs, Size picture) {
  if (mask.kind != MaskKind::runs || of_runs == picture) return "";
  return "the run lengths are of " + std::to_string(of_runs.width) + " x " +
         std::to_string(of_runs.height) + " pixels, the picture has " +
         std::to_string(picture.width) + " x " + std::to_string(picture.height);
}

void ObjectScanner::read_numbers() {
  numbers_.clear();
  json_.read_array([&] { numbers_.push_back(json_.read_number()); });
}

void ObjectScanner::read_box(BoxFormat format, ScannedObject& object) {
  read_numbers();
  object.has_box = true;
  if (numbers_.size() != 4) {
    return object.set_problem("the bbox has " + std::to_string(numbers_.size()) +
                              " numbers, must be 4");
  }
  object.object.box = upright_box(format, numbers_);
}

void ObjectScanner::read_area(ScannedObject& object) {
  object.object.area = json_.read_number();
  object.has_area = true;
}

void ObjectScanner::read_keypoints(ScannedObject& object) {
  read_numbers();
  if (numbers_.size() % 3 != 0) {
    return object.set_problem(std::to_string(numbers_.size()) +
                              " numbers of keypoints, must be 3 for each");
  }
  object.first_point = static_cast<uint32_t>(to_.keypoints.size());
  object.points = static_cast<uint32_t>(numbers_.size() / 3);
  for (size_t i = 0; i < numbers_.size(); i += 3) {
    to_.keypoints.push_back({numbers_[i], numbers_[i + 1], numbers_[i + 2]});
  }
}

void ObjectScanner::read_mask(ScannedObject& object) {
  const char kind = json_.next_kind();
  if (kind == '[') return read_polygons(object);
  if (kind == '{') return read_runs(object);
  json_.skip();
  if (kind != 'n') {
    object.set_problem("the segmentation is neither a list of polygons nor run lengths");
  }
}

void ObjectScanner::read_polygons(ScannedObject& object) {
  const auto begin = static_cast<uint32_t>(to_.polygons.size());
  json_.read_array([&] {
    if (json_.next_kind() != '[') {
      json_.skip();
      return object.set_problem("the segmentation is no list of polygons");
    }
    read_numbers();
    if (numbers_.size() % 2 != 0) {
      object.set_problem("a polygon of " + std::to_string(numbers_.size()) + " numbers");
    }
    const auto first = static_cast<uint32_t>(to_.points.size());
    for (size_t i = 0; i + 1 < numbers_.size(); i += 2) {
      to_.points.push_back({numbers_[i], numbers_[i + 1]});
    }
    to_.polygons.push_back({first, static_cast<uint32_t>(numbers_.size() / 2)});
  });
  const auto count = static_cast<uint32_t>(to_.polygons.size()) - begin;
  object.object.mask = {count > 0 ? MaskKind::polygons : MaskKind::none, begin, count};
}

void ObjectScanner::read_runs(ScannedObject& object) {
  bool has_counts = false;
  const auto first = static_cast<uint32_t>(to_.runs.size());
  json_.read_object([&](std::string_view key) {
    if (key == "counts") {
      has_counts = true;
      read_counts(object);
    } else if (key == "size") {
      read_numbers();
      if (numbers_.size() == 2) object.mask_size = {side_of(numbers_[1]), side_of(numbers_[0])};
    } else {
      json_.skip();
    }
  });
  if (!has_counts) return object.set_problem("run lengths without counts");
  object.object.mask = {MaskKind::runs, first, static_cast<uint32_t>(to_.runs.size()) - first};
}

void ObjectScanner::read_counts(ScannedObject& object) {
  if (json_.next_kind() == '"') {
    json_.read_string(text_);
    return object.set_problem(append_text_runs(text_, to_.runs));
  }
  read_numbers();
  for (const double number : numbers_) {
    const bool is_run = number >= 0 && number < 4294967296.0 && number == std::floor(number);
    if (!is_run) object.set_problem("a run length that is none");
    to_.runs.push_back(is_run ? static_cast<uint32_t>(number) : 0);
  }
}

}  // namespace stoker
