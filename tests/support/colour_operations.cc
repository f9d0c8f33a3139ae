#include "tests/support/colour_operations.h"

#include <algorithm>
#include <functional>
#include <map>

#include "decode/pixel/blur.h"
#include "decode/pixel/colour.h"
#include "decode/pixel/hsv.h"

namespace stoker {
namespace {

using Numbers = std::vector<double>;
using Operation = std::function<void(MutableImageView, const Numbers&, ColourRoom&)>;

Operation of_number(void (*op)(MutableImageView, double)) {
  return [op](MutableImageView image, const Numbers& n, ColourRoom&) { op(image, n.at(0)); };
}

Operation of_image(void (*op)(MutableImageView)) {
  return [op](MutableImageView image, const Numbers&, ColourRoom&) { op(image); };
}

// Runs op(out) and copies what it wrote to the image.
template <class Op>
void through(MutableImageView image, ColourRoom& room, const Op& op) {
  const ptrdiff_t row_bytes = ptrdiff_t{3} * image.width;
  room.blurred.resize(static_cast<size_t>(row_bytes) * image.height);
  op(MutableImageView{room.blurred.data(), image.width, image.height, row_bytes});
  for (int y = 0; y < image.height; ++y) {
    std::copy_n(room.blurred.data() + y * row_bytes, row_bytes,
                image.data + y * image.stride_bytes);
  }
}

const std::map<std::string, Operation>& operations() {
  static const std::map<std::string, Operation> kOperations = {
      {"brightness", of_number(adjust_brightness)},
      {"contrast", of_number(adjust_contrast)},
      {"saturation", of_number(adjust_saturation)},
      {"hue", of_number(adjust_hue)},
      {"gamma", of_number(adjust_gamma)},
      {"solarize", of_number(solarize)},
      {"posterize", [](MutableImageView image, const Numbers& n,
                       ColourRoom&) { posterize(image, static_cast<int>(n.at(0))); }},
      {"sharpness", [](MutableImageView image, const Numbers& n,
                       ColourRoom& room) { adjust_sharpness(image, n.at(0), room.scratch); }},
      {"grayscale", of_image(grayscale)},
      {"invert", of_image(invert)},
      {"equalize", of_image(equalize)},
      {"autocontrast", of_image(autocontrast)},
      {"hsv",
       [](MutableImageView image, const Numbers& n, ColourRoom&) {
         adjust_hsv(image, {n.at(0), n.at(1), n.at(2)});
       }},
      {"pillow_blur",
       [](MutableImageView image, const Numbers& n, ColourRoom& room) {
         through(image, room, [&](MutableImageView out) {
           pillow_gaussian_blur(image, n.at(0), out, room.scratch);
         });
       }},
      {"gaussian_blur",
       [](MutableImageView image, const Numbers& n, ColourRoom& room) {
         through(image, room, [&](MutableImageView out) {
           gaussian_blur(image, static_cast<int>(n.at(0)), static_cast<int>(n.at(1)), n.at(2),
                         n.at(3), out, room.scratch);
         });
       }},
  };
  return kOperations;
}

}  // namespace

bool run_colour_operation(const std::string& name, MutableImageView image,
                          const std::vector<double>& numbers, ColourRoom& room) {
  const auto found = operations().find(name);
  if (found == operations().end()) return false;
  found->second(image, numbers, room);
  return true;
}

}  // namespace stoker
