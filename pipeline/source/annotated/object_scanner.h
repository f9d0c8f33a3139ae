// Reads the fields of an object from JSON, in the forms of COCO: boxes of four numbers, polygons
// and run lengths, keypoints. Owner: one reader, which has the scanner of the text, too. Threads:
// one at a time. Errors: JsonError where the text is not JSON; what is wrong with an object is its
// problem.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/annotation/annotations.h"
#include "pipeline/annotation/box_format.h"
#include "pipeline/source/annotated/json_scanner.h"

namespace stoker {

struct ScannedObject {
  AnnotatedObject object{};
  uint32_t first_point = 0, points = 0;  // of Annotations::keypoints
  Size mask_size{};                      // of run lengths
  bool has_box = false, has_area = false, has_label = false, has_id = false;
  std::string problem{};  // the first one

  void set_problem(std::string text) {
    if (problem.empty()) problem = std::move(text);
  }
  // The area of an object that brings none is its box's.
  void set_missing_area();
};

class ObjectScanner {
 public:
  // Keypoints, polygons and runs are appended to those of `to`.
  ObjectScanner(JsonScanner& json, Annotations& to) : json_(json), to_(to) {}

  // Each reads the next value.
  void read_box(BoxFormat format, ScannedObject& object);
  void read_area(ScannedObject& object);
  void read_keypoints(ScannedObject& object);
  void read_mask(ScannedObject& object);

 private:
  void read_numbers();
  void read_polygons(ScannedObject& object);
  void read_runs(ScannedObject& object);
  void read_counts(ScannedObject& object);

  JsonScanner& json_;
  Annotations& to_;
  std::vector<double> numbers_;
  std::string text_;
};

// Returns the upright box that four numbers of a format are.
std::array<double, 4> upright_box(BoxFormat format, std::span<const double> numbers);
// Returns a picture's side; -1 if the number can be none.
int side_of(double number);
// Returns "", or that an object's run lengths are of another size than the picture.
std::string mask_size_problem(const MaskShape& mask, Size of_runs, Size picture);

}  // namespace stoker
