// Where a polygon's boundary crosses the columns of a picture. A pixel's mask changes at each
// crossing of its column from there on downwards, so the crossings are the mask. Pure functions.
//
// The rules are those of rleFrPoly() in pycocotools (maskApi.c), whose masks COCO's figures are
// counted by. Corners are rounded to a grid five times as fine as the pixels; an edge is the points
// of that grid nearest to it, one for each step along its longer axis. Column c is crossed where
// such points go from 5 c + 2 to 5 c + 3, or back; the mask changes at the row whose middle is the
// first that is not above the upper one of the two. That program walks along all points of the
// boundary; here only those are computed that are at a crossing.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>

#include "decode/image.h"

namespace stoker {

// An edge of a polygon on the fine grid.
class FineEdge {
 public:
  struct Corner {
    int64_t x = 0, y = 0;
  };
  // Coordinates over 2^31 on the fine grid, which overflow there, are cut off.
  static Corner corner(const std::array<double, 2>& point) {
    return {rounded(point[0]), rounded(point[1])};
  }

  FineEdge(Corner from, Corner to, Size size) : size_(size) {
    const int64_t width = std::abs(to.x - from.x), height = std::abs(to.y - from.y);
    is_steep_ = height > width;
    if (is_steep_ ? from.y > to.y : from.x > to.x) std::swap(from, to);
    from_ = from;
    length_ = is_steep_ ? height : width;
    if (length_ == 0) return;
    const int64_t rise = is_steep_ ? to.x - from.x : to.y - from.y;
    slope_ = static_cast<double>(rise) / static_cast<double>(length_);
    const auto [left, right] = std::minmax(from.x, to.x);
    first_ = column_after(left);
    end_ = column_after(right);
  }

  // The columns that it crosses.
  int first_column() const { return first_; }
  int end_column() const { return end_; }

  // The row at which it crosses a column, from 0 to the picture's height.
  int row(int column) const {
    const int64_t beyond = int64_t{kFine} * column + kMiddle + 1;
    if (is_steep_) return row_of(static_cast<double>(from_.y + steps_to(beyond) - 1));
    const int64_t upper = beyond - from_.x - (slope_ < 0 ? 0 : 1);
    return row_of(along(from_.y, upper));
  }

 private:
  static constexpr int kFine = 5, kMiddle = 2;

  static int64_t rounded(double value) {
    constexpr double kMost = 2147483647.0;
    const double fine = kFine * value + 0.5;
    return static_cast<int64_t>(fine < kMost ? std::max(fine, -kMost) : kMost);
  }

  // The first column whose crossing lies at or right of this.
  int column_after(int64_t fine_x) const {
    const int64_t right = fine_x + kMiddle;
    return static_cast<int>(std::clamp<int64_t>(right < 0 ? 0 : right / kFine, 0, size_.width));
  }

  // Before it is cut off to a whole number, which makes it the nearest one (but for negative ones).
  double along(int64_t from, int64_t steps) const {
    return (static_cast<double>(from) + slope_ * static_cast<double>(steps)) + 0.5;
  }

  // The steps after which a steep edge has passed the place before `beyond`.
  int64_t steps_to(int64_t beyond) const {
    const auto limit = static_cast<double>(beyond);
    const auto has_passed = [&](int64_t steps) {
      return (along(from_.x, steps) >= limit) == (slope_ > 0);
    };
    // The quotient is off by far less than a step, and cut off, so it is not behind the place.
    const double before = (limit - 0.5 - static_cast<double>(from_.x)) / slope_;
    auto steps = std::clamp<int64_t>(static_cast<int64_t>(before), 1, length_);
    while (!has_passed(steps)) ++steps;
    return steps;
  }

  int row_of(double fine_y) const {
    if (!(fine_y >= 1)) return 0;
    if (fine_y >= static_cast<double>(kFine) * size_.height) return size_.height;
    return std::min((static_cast<int>(fine_y) + kMiddle) / kFine, size_.height);
  }

  Size size_;
  Corner from_;
  int64_t length_ = 0;  // in steps
  double slope_ = 0;    // of the other axis, for a step
  bool is_steep_ = false;
  int first_ = 0, end_ = 0;
};

// Calls take(column, row) for each crossing of a column that `wants(column)`. Each column is
// crossed an even number of times. Points outside the picture are allowed.
template <class Wants, class Take>
void cross_columns(std::span<const std::array<double, 2>> points, Size size, const Wants& wants,
                   const Take& take) {
  if (points.empty()) return;
  const FineEdge::Corner first = FineEdge::corner(points.front());
  FineEdge::Corner from = first;
  for (size_t i = 1; i <= points.size(); ++i) {
    const FineEdge::Corner to = i < points.size() ? FineEdge::corner(points[i]) : first;
    const FineEdge edge(from, to, size);
    for (int column = edge.first_column(); column < edge.end_column(); ++column) {
      if (wants(column)) take(column, edge.row(column));
    }
    from = to;
  }
}

}  // namespace stoker
