#include "pipeline/annotation/rotated_boxes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "pipeline/annotation/box_format.h"

namespace stoker {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
// A corner that is outside by less lies at the picture's side but for rounding: there, torchvision
// may make a point of the box.
constexpr double kRounding = 1e-7;

// As torch.clamp: no number if one of them is none, and `high` where the limits cross.
double limited(double value, double low, double high) {
  if (std::isnan(value) || std::isnan(low) || std::isnan(high)) return kNoNumber;
  return std::min(std::max(value, low), high);
}

// As torch.isclose.
bool is_close(double a, double b) { return a == b || std::abs(a - b) <= 1e-8 + 1e-5 * std::abs(b); }

// The number of the leftmost corner; of those, of the upper one. Both are compared in one number,
// as there, so that a corner a little to the right may count as leftmost.
int leftmost(const RotatedBox& box) {
  double most_x = 0, most_y = 0;
  for (size_t i = 0; i < 8; i += 2) {
    most_x = std::max(most_x, std::abs(box[i]));
    most_y = std::max(most_y, std::abs(box[i + 1]));
  }
  const auto rank = [&](int i) {
    const auto at = static_cast<size_t>(2 * i);
    return box[at + 1] / most_y + 100 * (box[at] / most_x);
  };
  int first = 0;
  for (int i = 1; i < 4; ++i) {
    if (rank(i) < rank(first)) first = i;
  }
  return first;
}

void begin_with(int corner, RotatedBox& box) {
  std::rotate(box.begin(), box.begin() + ptrdiff_t{2} * corner, box.end());
}

// The lines through neighbouring corners: y = slope x + height.
struct Lines {
  std::array<double, 4> slope, height;

  explicit Lines(const RotatedBox& box) {
    for (size_t i = 0; i < 4; ++i) {
      const size_t at = 2 * i, next = (at + 2) % 8;
      slope[i] = (box[next + 1] - box[at + 1]) / (box[next] - box[at]);
      height[i] = box[at + 1] - slope[i] * box[at];
    }
  }

  // The corners where each line meets the one before it.
  RotatedBox corners() const {
    RotatedBox box;
    for (size_t i = 0; i < 4; ++i) {
      const size_t before = (i + 3) % 4;
      box[2 * i] = -(height[i] - height[before]) / (slope[i] - slope[before]);
      box[2 * i + 1] = slope[i] * box[2 * i] + height[i];
    }
    return box;
  }
};

// Moves the two lines through the leftmost corner until they cross the left side of the picture
// where the box's other two do at most.
RotatedBox moved_lines(const RotatedBox& box, const RotatedBox& original, double picture_height) {
  Lines lines(box);
  const std::array<double, 4> most = Lines(original).height;
  const auto [h1, h2, h3, h4] = lines.height;
  const double first = limited(limited(h2, h1, h3), 0, picture_height);
  const double last = limited(limited(h3, h2, h4), 0, picture_height);
  lines.height = {limited(first, most[0], most[2]), limited(h2, most[1], most[3]),
                  limited(h3, most[0], most[2]), limited(last, most[1], most[3])};
  return lines.corners();
}

// REQUIRES: the box begins with its leftmost corner, and `original` with the same.
void clamp_at_left(RotatedBox& box, const RotatedBox& original, double picture_height) {
  const auto [x1, y1, x2, y2, x3, y3, x4, y4] = box;
  const bool is_upright = is_close(y1, y2) || is_close(y3, y4);
  const bool is_outside = x1 <= 0 && x2 <= 0 && x3 <= 0 && x4 <= 0;
  if (is_outside || is_close(y1, y4) || is_close(y2, y3) || (is_upright && is_close(x1, x2))) {
    box = {};
  } else if (is_upright) {
    box[0] = std::max(x1, 0.0);
    box[6] = std::max(x4, 0.0);
  } else if (x1 < -kRounding) {
    const RotatedBox moved = moved_lines(box, original, picture_height);
    if (std::ranges::none_of(moved, [](double number) { return std::isnan(number); })) box = moved;
  }
}

// Turns a box as its picture by a quarter of a circle, counterclockwise.
void turn_with_picture(double picture_width, RotatedBox& box) {
  for (size_t i = 0; i < 8; i += 2) {
    const double x = box[i];
    box[i] = box[i + 1];
    box[i + 1] = picture_width - x;
  }
}

RotatedBox without_infinity(const RotatedBox& box) {
  const bool is_finite = std::ranges::all_of(box, [](double x) { return std::isfinite(x); });
  return is_finite ? box : RotatedBox{};
}

}  // namespace

RotatedBox rectangle_of(const RotatedBox& moved) {
  const auto [x1, y1, x2, y2, x3, y3, x4, y4] = moved;
  const double upper = length_of(x2 - x1, y2 - y1), left = length_of(x4 - x1, y4 - y1);
  // Angles of the upper and the left side, and the one between them.
  const double upper_angle = std::atan2(y1 - y2, x2 - x1),
               left_angle = std::atan2(y1 - y4, x4 - x1);
  const double between = upper_angle - left_angle;
  const double sign = between > std::numbers::pi / 2 ? -1 : 1;
  // The longer side becomes longer, the other one shorter.
  const double width =
      upper < left ? upper * std::sin(between) : upper + left * std::cos(between) * sign;
  const double height =
      upper > left ? left * std::sin(between) : left + upper * std::cos(between) * sign;
  const double angle = left > upper ? left_angle + std::numbers::pi / 2 : upper_angle;
  const double across_x = width / 2 * std::cos(angle), across_y = -width / 2 * std::sin(angle);
  const double down_x = height / 2 * std::sin(angle), down_y = height / 2 * std::cos(angle);
  const double x = (x1 + x3) / 2, y = (y1 + y3) / 2;
  return without_infinity({x - across_x - down_x, y - across_y - down_y, x + across_x - down_x,
                           y + across_y - down_y, x + across_x + down_x, y + across_y + down_y,
                           x - across_x + down_x, y - across_y + down_y});
}

// Each side of the picture is the left one in turn.
RotatedBox clamped(const RotatedBox& box, Size picture) {
  RotatedBox cut = box, original = box;
  double width = picture.width, height = picture.height;
  for (int side = 0; side < 4; ++side, std::swap(width, height)) {
    const int first = leftmost(cut);
    for (RotatedBox* each : {&cut, &original}) begin_with(first, *each);
    clamp_at_left(cut, original, height);
    // Once more, as there: over four sides, this makes whole turns.
    for (RotatedBox* each : {&cut, &original}) {
      begin_with(first, *each);
      turn_with_picture(width, *each);
    }
  }
  return without_infinity(cut);
}

std::array<double, 4> upright_box(const RotatedBox& box) {
  const auto [x1, y1, x2, y2, x3, y3, x4, y4] = box;
  return {std::min({x1, x2, x3, x4}), std::min({y1, y2, y3, y4}), std::max({x1, x2, x3, x4}),
          std::max({y1, y2, y3, y4})};
}

}  // namespace stoker
