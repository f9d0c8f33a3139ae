// Requests for warps in words, which scripts write and golden files have:
//   matrix HOW WIDTH HEIGHT M0 .. M5      warp_affine(), and the size of the result
//   coefficients HOW WIDTH HEIGHT C0 .. C7
//   rotate HOW DEGREES EXPAND HAS_CENTER X Y
//   affine HOW DEGREES TX TY SCALE SHEAR_X SHEAR_Y HAS_CENTER X Y
//   perspective HOW START END             four corners each, x and y
// HOW is the interpolation (0 nearest, 1 bilinear, 2 bicubic) and three numbers, the fill. Numbers
// have any form that strtod reads.
#pragma once

#include <array>
#include <cstdlib>
#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "decode/pixel/warp.h"
#include "decode/pixel/warp_matrix.h"
#include "decode/pixel_ops.h"

namespace stoker {

// An RGB image.
class WarpPicture {
 public:
  explicit WarpPicture(Size size)
      : size_(size), bytes_(size_t{3} * size.width * size.height, uint8_t{0x5a}) {}
  Size size() const { return size_; }
  MutableImageView view() {
    return {bytes_.data(), size_.width, size_.height, ptrdiff_t{3} * size_.width};
  }
  const std::vector<uint8_t>& bytes() const { return bytes_; }
  char* chars() { return reinterpret_cast<char*>(bytes_.data()); }
  std::streamsize count() const { return static_cast<std::streamsize>(bytes_.size()); }

 private:
  Size size_;
  std::vector<uint8_t> bytes_;
};

// Reads the words of a request after its name.
class WarpNumbers {
 public:
  explicit WarpNumbers(std::istream& in) : in_(in) {}
  double real() {
    std::string word;
    in_ >> word;
    return std::strtod(word.c_str(), nullptr);
  }
  int whole() { return static_cast<int>(real()); }
  Point point() {
    const double x = real();
    return {x, real()};
  }
  Size size() {
    const int width = whole();
    return {width, whole()};
  }
  Corners corners() {
    Corners corners;
    for (Corner& corner : corners) corner = {whole(), whole()};
    return corners;
  }
  template <size_t kCount>
  std::array<double, kCount> reals() {
    std::array<double, kCount> values;
    for (double& value : values) value = real();
    return values;
  }
  std::optional<Point> maybe_point() {
    const bool is_given = whole() != 0;
    const Point given = point();
    return is_given ? std::optional(given) : std::nullopt;
  }

 private:
  std::istream& in_;
};

struct WarpHow {
  explicit WarpHow(WarpNumbers& numbers)
      : interpolation(static_cast<Interpolation>(numbers.whole())) {
    for (uint8_t& value : fill) value = static_cast<uint8_t>(numbers.whole());
  }
  Interpolation interpolation;
  Rgb fill;
};

inline WarpPicture rotated_picture(WarpPicture& in, const WarpHow& how, WarpNumbers& numbers) {
  const double degrees = numbers.real();
  const bool expand = numbers.whole() != 0;
  const std::optional<Point> center = numbers.maybe_point();
  const Size size = in.size();
  if (const auto quarters = quarter_turns(degrees, size, expand, center.has_value())) {
    WarpPicture out(*quarters % 2 != 0 ? Size{size.height, size.width} : size);
    turn(in.view(), *quarters, out.view());
    return out;
  }
  Size out_size;
  const auto matrix = rotation_matrix(degrees, size, expand, center, out_size);
  WarpPicture out(out_size);
  warp_affine(in.view(), matrix, how.interpolation, how.fill, out.view());
  return out;
}

inline WarpPicture sheared_picture(WarpPicture& in, const WarpHow& how, WarpNumbers& numbers) {
  AffineParameters parameters;
  parameters.degrees = numbers.real();
  parameters.translate = numbers.point();
  parameters.scale = numbers.real();
  parameters.shear = numbers.point();
  const Point middle{in.size().width * 0.5, in.size().height * 0.5};
  const auto matrix = affine_matrix(numbers.maybe_point().value_or(middle), parameters);
  WarpPicture out(in.size());
  warp_affine(in.view(), matrix, how.interpolation, how.fill, out.view());
  return out;
}

inline WarpPicture picture_in_perspective(WarpPicture& in, const WarpHow& how,
                                          WarpNumbers& numbers) {
  const Corners start = numbers.corners();
  WarpPicture out(in.size());
  if (const auto coefficients = perspective_coefficients(start, numbers.corners())) {
    warp_perspective(in.view(), *coefficients, how.interpolation, how.fill, out.view());
  }
  return out;
}

inline WarpPicture answer_to_warp(const std::string& name, WarpPicture& in, WarpNumbers& numbers) {
  const WarpHow how(numbers);
  if (name == "rotate") return rotated_picture(in, how, numbers);
  if (name == "affine") return sheared_picture(in, how, numbers);
  if (name == "perspective") return picture_in_perspective(in, how, numbers);
  WarpPicture out(numbers.size());
  if (name == "matrix") {
    warp_affine(in.view(), numbers.reals<6>(), how.interpolation, how.fill, out.view());
  } else {
    warp_perspective(in.view(), numbers.reals<8>(), how.interpolation, how.fill, out.view());
  }
  return out;
}

}  // namespace stoker
