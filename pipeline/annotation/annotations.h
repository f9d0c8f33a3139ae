// This is what lies on the pictures of a data set: objects (boxes, classes, masks, keypoints) and
// label images. Coordinates are in pixels of the picture as it is shown, from its upper left
// corner: pixel (x, y) covers [x, x + 1) x [y, y + 1), as in COCO and torchvision. Values; a thread
// reuses one Annotations for sample after sample.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "decode/image.h"

namespace stoker {

// The kinds of annotations of a source: all its samples have the same.
struct AnnotationInfo {
  bool objects = false;      // each has a box, a class, an area, an id and `is_crowd`
  bool rotated = false;      // boxes are rotated: Annotations::corners has them
  bool masks = false;        // of objects
  int keypoints = 0;         // of each object; 0: none
  bool label_image = false;  // a class or a segment's id for each pixel
  // Bytes of a label: 1, or 4 (a panoptic PNG's red + 256 green + 65536 blue).
  int label_bytes = 1;
  std::vector<std::string> class_names{};  // by AnnotatedObject::label; "": no class has the number
  std::vector<std::string> keypoint_names{};
  uint64_t digest = 0;  // of all annotations that are known before the samples are read

  bool any() const { return objects || label_image; }
  bool operator==(const AnnotationInfo&) const = default;
};
// Returns what there is: "objects of 80 classes with masks and 17 keypoints", "label images of 1
// byte", or "no annotations".
std::string describe(const AnnotationInfo& info);

enum class MaskKind : uint8_t {
  none,
  polygons,  // Annotations::polygons [first, first + count): the object is all of them together
  runs,      // Annotations::runs [first, first + count)
};

struct MaskShape {
  MaskKind kind = MaskKind::none;
  uint32_t first = 0, count = 0;
};

struct AnnotatedObject {
  std::array<double, 4> box{};  // x0, y0, x1, y1
  int64_t label = 0;            // its class
  int64_t id = 0;               // as the data have it
  double area = 0;              // of its mask, in pixels, as the data have it; else the box's
  bool is_crowd = false;
  MaskShape mask{};
  int32_t index = 0;   // in Annotations::objects, by which a moved object finds the rest
  double visible = 1;  // the share of its box that no motion has cut off
};

struct Keypoint {
  double x = 0, y = 0;
  double visibility = 0;  // COCO's: 0 not labelled, 1 labelled but hidden, 2 visible
};

struct Polygon {
  uint32_t first = 0, count = 0;  // of Annotations::points
};

// The annotations of one sample.
struct Annotations {
  int64_t picture_id = -1;  // as the data have it (COCO's image_id); -1: they have none
  Size size{};              // of the picture, as the annotation says; {}: it does not
  std::vector<AnnotatedObject> objects{};
  // One for each object if boxes are rotated: x, y of the corners that are upper left, upper right,
  // lower right and lower left before the turn. `box` is the smallest upright box then.
  std::vector<std::array<double, 8>> corners{};
  std::vector<Keypoint> keypoints{};  // AnnotationInfo::keypoints for each object
  std::vector<std::array<double, 2>> points{};
  std::vector<Polygon> polygons{};
  // COCO's run lengths: of zeros and ones in turn, zeros first, down the columns of a picture of
  // `size`.
  std::vector<uint32_t> runs{};
  // The bytes of the label image's file (PNG), in `label_buffer` or in memory of the source.
  std::span<const uint8_t> label_file{};
  std::vector<uint8_t> label_buffer{};

  void clear() {
    picture_id = -1;
    size = {};
    objects.clear();
    corners.clear();
    keypoints.clear();
    points.clear();
    polygons.clear();
    runs.clear();
    label_file = {};
  }
};

}  // namespace stoker
