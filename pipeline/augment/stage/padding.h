// Shared by `pad` and `random_crop`: sides, and which images a mode of padding works on.
#pragma once

#include <cmath>
#include <string>

#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stage.h"

namespace stoker {

// left, top, right, bottom of one, two or four numbers, as torchvision's `padding`.
inline std::array<int, 4> padding_sides(const Arguments& arguments, const char* name) {
  const std::vector<double>& n = arguments.numbers(name);
  if (n.size() == 3 || n.size() > 4) {
    arguments.refuse(name,
                     "1, 2 or 4 numbers: all sides, (left and right, top and bottom), or "
                     "(left, top, right, bottom)");
  }
  for (const double side : n) {
    if (side != std::floor(side)) arguments.refuse(name, "whole numbers");
  }
  const auto side = [&](size_t i) { return static_cast<int>(n[i % n.size()]); };
  return {side(0), side(1), side(2), side(3)};
}

// Returns why an image of this size cannot be padded so; "" if it can.
inline std::string padding_problem(Size size, const std::array<int, 4>& sides, Padding padding) {
  if (padding == Padding::constant || padding == Padding::edge) return "";
  const int less = padding == Padding::reflect ? 1 : 0;
  const int most_x = std::max(sides[0], sides[2]), most_y = std::max(sides[1], sides[3]);
  if (most_x <= size.width - less && most_y <= size.height - less) return "";
  return std::to_string(std::max(most_x, most_y)) + " pixels of padding with mode " +
         kPaddingNames[static_cast<int>(padding)] + " on an image of " +
         std::to_string(size.width) + " x " + std::to_string(size.height);
}

}  // namespace stoker
