#include "pipeline/annotation/box_format.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace stoker {
namespace {

constexpr double kDegree = std::numbers::pi / 180;

template <size_t kCount>
void write_floats(const std::array<double, kCount>& numbers, float* out) {
  std::transform(numbers.begin(), numbers.end(), out,
                 [](double number) { return static_cast<float>(number); });
}

std::array<double, 8> upright_corners(double x0, double y0, double x1, double y1) {
  return {x0, y0, x1, y0, x1, y1, x0, y1};
}

// `x`, `y`: the first corner.
std::array<double, 8> turned_corners(double x, double y, double width, double height,
                                     double degrees) {
  const double cos = std::cos(degrees * kDegree), sin = std::sin(degrees * kDegree);
  const double along_x = width * cos, along_y = -width * sin;
  const double down_x = height * sin, down_y = height * cos;
  return {
      x,          y,         x + along_x, y + along_y, x + along_x + down_x, y + along_y + down_y,
      x + down_x, y + down_y};
}

}  // namespace

int box_numbers(BoxFormat format) {
  switch (format) {
    case BoxFormat::xyxyxyxy:
      return 8;
    case BoxFormat::xywhr:
    case BoxFormat::cxcywhr:
      return 5;
    default:
      return 4;
  }
}

bool is_rotated(BoxFormat format) { return box_numbers(format) != 4; }

std::array<double, 8> box_corners(BoxFormat format, std::span<const double> box) {
  switch (format) {
    case BoxFormat::xyxy:
      return upright_corners(box[0], box[1], box[2], box[3]);
    case BoxFormat::xywh:
      return upright_corners(box[0], box[1], box[0] + box[2], box[1] + box[3]);
    case BoxFormat::cxcywh:
      return upright_corners(box[0] - box[2] / 2, box[1] - box[3] / 2, box[0] + box[2] / 2,
                             box[1] + box[3] / 2);
    case BoxFormat::xywhr:
      return turned_corners(box[0], box[1], box[2], box[3], box[4]);
    case BoxFormat::cxcywhr: {
      const double cos = std::cos(box[4] * kDegree), sin = std::sin(box[4] * kDegree);
      const double x = box[0] - box[2] / 2 * cos - box[3] / 2 * sin;
      const double y = box[1] + box[2] / 2 * sin - box[3] / 2 * cos;
      return turned_corners(x, y, box[2], box[3], box[4]);
    }
    case BoxFormat::xyxyxyxy:
      break;
  }
  std::array<double, 8> corners;
  std::copy_n(box.begin(), corners.size(), corners.begin());
  return corners;
}

void write_box(BoxFormat format, const std::array<double, 4>& xyxy, float* out) {
  const auto [x0, y0, x1, y1] = xyxy;
  using Four = std::array<double, 4>;
  if (format == BoxFormat::xywh) return write_floats(Four{x0, y0, x1 - x0, y1 - y0}, out);
  if (format == BoxFormat::cxcywh) {
    return write_floats(Four{(x0 + x1) / 2, (y0 + y1) / 2, x1 - x0, y1 - y0}, out);
  }
  write_floats(xyxy, out);
}

void write_corners(BoxFormat format, const std::array<double, 8>& corners, float* out) {
  if (format == BoxFormat::xyxyxyxy) return write_floats(corners, out);
  const auto [x1, y1, x2, y2, x3, y3, x4, y4] = corners;
  const double width = length_of(x2 - x1, y2 - y1), height = length_of(x3 - x2, y3 - y2);
  const double angle = std::atan2(y1 - y2, x2 - x1) / kDegree;
  const bool is_centre = format == BoxFormat::cxcywhr;
  write_floats(std::array<double, 5>{is_centre ? (x1 + x3) / 2 : x1, is_centre ? (y1 + y3) / 2 : y1,
                                     width, height, angle},
               out);
}

}  // namespace stoker
