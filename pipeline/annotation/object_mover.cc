#include "pipeline/annotation/object_mover.h"

#include <algorithm>
#include <cmath>

#include "pipeline/annotation/box_format.h"
#include "pipeline/annotation/point_map.h"
#include "pipeline/annotation/rotated_boxes.h"

namespace stoker {
namespace {

// A share that is smaller by less is smaller by rounding: the cutting off of rotated boxes changes
// the last bits of those that lie inside.
constexpr double kShareRounding = 1e-9;

// As torchvision's kernels: those after which a box may reach out of the picture cut it off.
bool cuts_off(Motion motion) {
  return motion == Motion::crop || motion == Motion::pad || motion == Motion::turn ||
         motion == Motion::affine || motion == Motion::perspective || motion == Motion::clamp;
}

bool moves_points(Motion motion) {
  return cuts_off(motion) ? motion != Motion::clamp
                          : motion == Motion::resize || motion == Motion::flip ||
                                motion == Motion::vertical_flip;
}

bool may_lose_points(Motion motion) {
  return motion == Motion::crop || motion == Motion::affine || motion == Motion::perspective;
}

bool is_mirror(Motion motion) { return motion == Motion::flip || motion == Motion::vertical_flip; }

std::array<double, 4> clamped_upright(const std::array<double, 4>& box, Size picture) {
  const double width = picture.width, height = picture.height;
  return {std::clamp(box[0], 0.0, width), std::clamp(box[1], 0.0, height),
          std::clamp(box[2], 0.0, width), std::clamp(box[3], 0.0, height)};
}

RotatedBox mapped(const RotatedBox& box, const PointMap& map) {
  RotatedBox out;
  for (size_t i = 0; i < 8; i += 2) {
    const auto [x, y] = map(box[i], box[i + 1]);
    out[i] = x;
    out[i + 1] = y;
  }
  return out;
}

std::array<double, 4> moved_box(const std::array<double, 4>& box, const PointMap& map) {
  const auto [x0, y0, x1, y1] = box;
  return upright_box(mapped({x0, y0, x1, y0, x1, y1, x0, y1}, map));
}

RotatedBox moved_rotated_box(const RotatedBox& box, Motion motion, const PointMap& map) {
  const RotatedBox moved = mapped(box, map);
  // In the mirror, the upper right corner is the upper left one.
  if (is_mirror(motion)) {
    const auto [x1, y1, x2, y2, x3, y3, x4, y4] = moved;
    return {x2, y2, x1, y1, x4, y4, x3, y3};
  }
  return motion == Motion::pad ? moved : rectangle_of(moved);
}

bool is_inside(double x, double y, Size picture) {
  return x >= 0 && x < picture.width && y >= 0 && y < picture.height;
}

double area_of(const std::array<double, 4>& box) {
  const auto [x0, y0, x1, y1] = box;
  return (x1 - x0) * (y1 - y0);
}

double area_of(const RotatedBox& box) {
  const auto [x1, y1, x2, y2, x3, y3, x4, y4] = box;
  return length_of(x2 - x1, y2 - y1) * length_of(x3 - x2, y3 - y2);
}

// As SanitizeBoundingBoxes: large enough, and inside the picture.
struct BoxRule {
  double min_size, min_area;
  Size picture;

  bool takes_sides(double width, double height) const {
    return width >= min_size && height >= min_size && width * height >= min_area;
  }
  bool takes(const std::array<double, 4>& box) const {
    const auto [x0, y0, x1, y1] = box;
    return takes_sides(x1 - x0, y1 - y0) && reaches_in(box);
  }
  bool takes(const RotatedBox& box) const {
    const auto [x1, y1, x2, y2, x3, y3, x4, y4] = box;
    return takes_sides(length_of(x2 - x1, y2 - y1), length_of(x3 - x2, y3 - y2)) &&
           reaches_in(upright_box(box));
  }
  bool reaches_in(const std::array<double, 4>& box) const {
    const auto [x0, y0, x1, y1] = box;
    return x0 >= 0 && y0 >= 0 && x1 <= picture.width && y1 <= picture.height;
  }
};

}  // namespace

void ObjectMover::begin(const Annotations& annotations, int keypoints) {
  objects_ = annotations.objects;
  corners_ = annotations.corners;
  keypoints_ = annotations.keypoints;
  points_ = static_cast<size_t>(keypoints);
  keypoints_.resize(objects_.size() * points_);
  for (size_t i = 0; i < objects_.size(); ++i) objects_[i].index = static_cast<int32_t>(i);
}

void ObjectMover::move(const Movement& movement) {
  if (moves_points(movement.motion)) {
    move_boxes(movement);
    move_keypoints(movement);
  }
  // A resize cuts off rotated boxes alone.
  const bool is_cut =
      cuts_off(movement.motion) || (movement.motion == Motion::resize && !corners_.empty());
  if (is_cut) clamp(movement.after);
  if (movement.motion == Motion::keep_centers) keep_centers(movement);
  if (movement.motion == Motion::sanitize) sanitize(movement);
  if (movement.motion == Motion::drop_empty) drop_empty();
  for (size_t i = 0; i < corners_.size(); ++i) objects_[i].box = upright_box(corners_[i]);
}

void ObjectMover::move_boxes(const Movement& movement) {
  const PointMap map(movement);
  if (corners_.empty()) {
    for (AnnotatedObject& object : objects_) object.box = moved_box(object.box, map);
  }
  for (RotatedBox& box : corners_) box = moved_rotated_box(box, movement.motion, map);
}

void ObjectMover::move_keypoints(const Movement& movement) {
  const PointMap map(movement, PointMap::Points::pixels);
  for (Keypoint& point : keypoints_) {
    const auto [x, y] = map(point.x, point.y);
    const bool is_lost = may_lose_points(movement.motion) && !is_inside(x, y, movement.after);
    point = {x, y, is_lost ? 0 : point.visibility};
  }
}

double ObjectMover::box_area(size_t place) const {
  return corners_.empty() ? area_of(objects_[place].box) : area_of(corners_[place]);
}

void ObjectMover::clamp(Size picture) {
  for (size_t i = 0; i < objects_.size(); ++i) {
    const double before = box_area(i);
    if (corners_.empty()) {
      objects_[i].box = clamped_upright(objects_[i].box, picture);
    } else {
      corners_[i] = clamped(corners_[i], picture);
    }
    objects_[i].visible *= before > 0 ? std::min(box_area(i) / before, 1.0) : 0;
  }
}

// As RandomIoUCrop, which has no rotated boxes: here it is the centre that counts for them, too.
void ObjectMover::keep_centers(const Movement& movement) {
  const double left = movement.values[0], right = left + movement.values[2];
  const double top = movement.values[1], bottom = top + movement.values[3];
  for (size_t i = 0; i < objects_.size(); ++i) {
    const auto [x0, y0, x1, y1] = objects_[i].box;
    const double x = 0.5 * (x0 + x1), y = 0.5 * (y0 + y1);
    if (left < x && x < right && top < y && y < bottom) continue;
    objects_[i].box = {};
    if (!corners_.empty()) corners_[i] = {};
    objects_[i].visible = 0;
  }
}

void ObjectMover::sanitize(const Movement& movement) {
  const BoxRule rule{movement.values[0], movement.values[1], movement.after};
  const double least_visible = movement.values[2] - kShareRounding;
  keep_if([&](size_t i) {
    if (objects_[i].visible < least_visible) return false;
    return corners_.empty() ? rule.takes(objects_[i].box) : rule.takes(corners_[i]);
  });
}

void ObjectMover::drop_empty() {
  keep_if([&](size_t i) {
    const auto [x0, y0, x1, y1] = objects_[i].box;
    return x1 > x0 && y1 > y0;
  });
}

template <typename Takes>
void ObjectMover::keep_if(Takes takes) {
  size_t kept = 0;
  for (size_t i = 0; i < objects_.size(); ++i) {
    if (!takes(i)) continue;
    objects_[kept] = objects_[i];
    if (!corners_.empty()) corners_[kept] = corners_[i];
    std::copy_n(keypoints_.begin() + static_cast<ptrdiff_t>(i * points_), points_,
                keypoints_.begin() + static_cast<ptrdiff_t>(kept * points_));
    ++kept;
  }
  objects_.resize(kept);
  if (!corners_.empty()) corners_.resize(kept);
  keypoints_.resize(kept * points_);
}

}  // namespace stoker
