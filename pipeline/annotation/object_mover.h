// Moves boxes, rotated boxes and keypoints as the pixels under them: as the functions of
// torchvision.transforms.v2.functional on BoundingBoxes and KeyPoints, in doubles. Owner: one per
// thread, reused. Threads: one at a time.
#pragma once

#include <span>
#include <vector>

#include "pipeline/annotation/annotations.h"
#include "pipeline/annotation/motion.h"

namespace stoker {

class ObjectMover {
 public:
  // Takes the objects of a sample. `keypoints`: of each object.
  void begin(const Annotations& annotations, int keypoints);
  // Changes nothing if the motion is not known.
  void move(const Movement& movement);

  // Those that were not dropped, in the order of the data. AnnotatedObject::index says which.
  std::span<const AnnotatedObject> objects() const { return objects_; }
  // The corners of each object, if boxes are rotated; otherwise none.
  std::span<const std::array<double, 8>> corners() const { return corners_; }
  // The points of the object at `place` of objects(). A point that left the picture has visibility
  // 0.
  std::span<const Keypoint> keypoints(size_t place) const {
    return std::span(keypoints_).subspan(place * points_, points_);
  }

 private:
  void move_boxes(const Movement& movement);
  void move_keypoints(const Movement& movement);
  double box_area(size_t place) const;
  void clamp(Size picture);
  void keep_centers(const Movement& movement);
  void sanitize(const Movement& movement);
  void drop_empty();
  // Drops the objects of the places that `takes` refuses.
  template <typename Takes>
  void keep_if(Takes takes);

  std::vector<AnnotatedObject> objects_;
  std::vector<std::array<double, 8>> corners_;
  std::vector<Keypoint> keypoints_;
  size_t points_ = 0;  // of each object
};

}  // namespace stoker
